"""What can be begun with: the pipeline as a form to fill, and one that runs as it is."""

from dataclasses import dataclass

from django.utils.translation import gettext_lazy as _

PIPELINE = """\
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

SALES = """\
name: Best products
description: The products that sold best, told on once a person has agreed.
parameters:
  count: 3
steps:
  - name: figures
    tool: database
    arguments:
      sql: >-
        SELECT p.name, ROUND(SUM(o.amount)) AS total
        FROM orders o JOIN products p ON p.id = o.product_id
        GROUP BY p.name ORDER BY total DESC LIMIT ${parameters.count}
    timeout: 30s
  - name: approval
    ask: "Shall these figures be told on? ${steps.figures.output}"
    approves: true
  - name: report
    agent: helper
    depends_on: [approval]
    arguments:
      task: "Say in two sentences what these figures show: ${steps.figures.output}"
"""


@dataclass(frozen=True, slots=True)
class Example:
    key: str
    title: str
    about: str
    text: str


EXAMPLES = {
    example.key: example
    for example in (
        Example(
            "pipeline",
            _("Data analysis pipeline"),
            _("Four steps, one after the other. Register tools of these names to run it."),
            PIPELINE,
        ),
        Example(
            "sales",
            _("Best products"),
            _("Asks the sample shop, a person and an agent; it runs as it is."),
            SALES,
        ),
    )
}
