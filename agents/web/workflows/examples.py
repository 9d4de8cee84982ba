"""Example workflows: a template to fill in, and one that runs as it is."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext_lazy as _

from agents.models.types import LazyText

PIPELINE = """\
workflow:
  name: "%(name)s"
  steps:
    - name: "%(collect)s"
      tool: "survey_reader" # %(registered)s
      condition: "always"   # %(condition)s
    - name: "%(clean)s"
      tool: "answer_cleaner"
      depends_on: ["%(collect)s"] # %(first)s
    - name: "%(count)s"
      tool: "answer_counter"
      depends_on: ["%(clean)s"]
      parallel: true # %(parallel)s
    - name: "%(write)s"
      tool: "report_writer"
      depends_on: ["%(count)s"]
"""

SALES = """\
name: "%(name)s"
description: "%(description)s"
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
    ask: "%(question)s ${steps.figures.output}"
    approves: true
  - name: report
    agent: helper
    depends_on: [approval]
    arguments:
      task: "%(task)s ${steps.figures.output}"
"""


@dataclass(frozen=True, slots=True)
class WorkflowExample:
    key: str
    title: LazyText
    about: LazyText
    template: str
    texts: Mapping[str, LazyText]

    @property
    def text(self) -> str:
        """The definition in the reader's language."""
        return self.template % {"name": self.title, **self.texts}


EXAMPLES = {
    example.key: example
    for example in (
        WorkflowExample(
            "pipeline",
            _("Survey report"),
            _("Runs four steps in sequence. Register tools with these names first."),
            PIPELINE,
            {
                "collect": _("Collect answers"),
                "clean": _("Remove duplicates"),
                "count": _("Count answers"),
                "write": _("Write report"),
                "registered": _("a registered tool"),
                "condition": _("or an expression"),
                "first": _("runs before this step"),
                "parallel": _("can run alongside other steps"),
            },
        ),
        WorkflowExample(
            "sales",
            _("Top products"),
            _(
                "Queries the sample shop, asks for approval, then has an agent "
                "summarize the results. Ready to run."
            ),
            SALES,
            {
                "description": _(
                    "The best-selling products, summarized after you approve the figures."
                ),
                "question": _("Use these figures in the report?"),
                "task": _("Say in two sentences what these figures show:"),
            },
        ),
    )
}
