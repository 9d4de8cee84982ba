"""The pipeline of the handbook, and tools of the names in it."""

from agents.engine import function_tool

TEXT = """\
workflow:
  name: "データ分析パイプライン"
  steps:
    - name: "データ収集"
      tool: "data_collector" # Tool Registryに登録されたツール名
      condition: "always"   # 実行条件
    - name: "前処理"
      tool: "data_preprocessor"
      depends_on: ["データ収集"] # 依存するステップ
    - name: "分析"
      tool: "analyzer"
      depends_on: ["前処理"]
      parallel: true # 並列実行の可否
    - name: "レポート生成"
      tool: "report_generator"
      depends_on: ["分析"]
"""


@function_tool
def data_collector() -> list:
    """Collects figures."""
    return [3, 1, 2]


@function_tool
def data_preprocessor() -> list:
    """Puts figures in order."""
    return [1, 2, 3]


@function_tool
def analyzer() -> dict:
    """Finds out what is in figures."""
    return {"mean": 2}


@function_tool
def report_generator() -> str:
    """Writes a report."""
    return "平均は 2 です。"
