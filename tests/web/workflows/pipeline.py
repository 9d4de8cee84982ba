"""The handbook's pipeline, and tools with its names."""

from agents.engine import function_tool

TEXT = """\
workflow:
  name: "アンケート集計レポート"
  steps:
    - name: "回答収集"
      tool: "survey_reader" # 登録済みのツール
      condition: "always"   # 条件式も書けます
    - name: "重複除去"
      tool: "answer_cleaner"
      depends_on: ["回答収集"] # 先に終えるステップ
    - name: "集計"
      tool: "answer_counter"
      depends_on: ["重複除去"]
      parallel: true # 同時に進めてよい
    - name: "報告書作成"
      tool: "report_writer"
      depends_on: ["集計"]
"""


@function_tool
def survey_reader() -> list:
    """Collects figures."""
    return [3, 1, 2]


@function_tool
def answer_cleaner() -> list:
    """Puts figures in order."""
    return [1, 2, 3]


@function_tool
def answer_counter() -> dict:
    """Finds out what is in figures."""
    return {"mean": 2}


@function_tool
def report_writer() -> str:
    """Writes a report."""
    return "平均は 2 です。"
