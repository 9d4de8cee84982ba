"""Example workflows: a template to fill in, and one that runs as it is."""

from dataclasses import dataclass

from django.utils.translation import gettext_lazy as _

from agents.models.types import LazyText

PIPELINE = """\
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

SALES = """\
name: Best products
description: The best-selling products, summarized after you approve the figures.
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
    ask: "Use these figures in the report? ${steps.figures.output}"
    approves: true
  - name: report
    agent: helper
    depends_on: [approval]
    arguments:
      task: "Say in two sentences what these figures show: ${steps.figures.output}"
"""


@dataclass(frozen=True, slots=True)
class WorkflowExample:
    key: str
    title: LazyText
    about: LazyText
    text: str


EXAMPLES = {
    example.key: example
    for example in (
        WorkflowExample(
            "pipeline",
            _("Survey report"),
            _("Runs four steps in sequence. Register tools with these names first."),
            PIPELINE,
        ),
        WorkflowExample(
            "sales",
            _("Top products"),
            _(
                "Queries the sample shop, asks for approval, then has an agent "
                "summarize the results. Ready to run."
            ),
            SALES,
        ),
    )
}
