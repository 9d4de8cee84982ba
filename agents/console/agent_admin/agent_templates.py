"""Templates for new agents."""

from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext_lazy as _

from agents.catalog import agent_spec
from agents.catalog.agent_spec import AgentSpec
from agents.engine.loop import AskPersonTool
from agents.models import Agent

MAX_MEMBERS = 3

REPORT_SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "findings": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "statement": {"type": "string"},
                    "figure": {"type": ["number", "null"]},
                    "source": {"type": "string"},
                },
                "required": ["statement", "source"],
                "additionalProperties": False,
            },
        },
        "open_questions": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["title", "findings", "open_questions"],
    "additionalProperties": False,
}

RESEARCH_PROMPT = _(
    "Answer only from the documents. Search with several phrasings before you say "
    "that something isn't covered, and cite each statement with its passage number "
    "in brackets. If passages contradict each other, say so and cite both. Answer "
    "briefly, in Markdown, in the language of the question."
)
ANALYSIS_PROMPT = _(
    "Answer questions with data from the database. Inspect the tables and columns "
    "first; never guess a name or a number. Use the calculator for anything the "
    "database can't compute. Start with one sentence on what the numbers mean, then "
    "show them as a table and state which period and rows they cover."
)
PLANNING_PROMPT = _(
    "You handle tasks that need several steps. Split the task into steps with "
    "verifiable results, run independent steps in parallel, and ask the user only "
    "for what you can't find out yourself. Finish with what was done, the results, "
    "and what is still open."
)
JUDGE_PROMPT = _(
    "Compare the answers of the panel members. Prefer answers backed by sources and "
    "numbers over ones that only sound confident, and point out where they differ."
)
REPORTING_PROMPT = _(
    "Research the question and report in the given structure. Each finding is one "
    "statement with its source: a document passage or a database query. Anything you "
    "can't establish is an open question, never a finding."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTemplate:
    """An agent template: title, description and settings."""

    key: str
    title: Any
    description: Any
    instructions: Any = ""
    tools: dict[str, dict[str, Any]] = field(default_factory=dict)
    setup: AgentSpec = field(default_factory=dict)
    asks_others: bool = False

    def spec(self) -> AgentSpec:
        """Return the spec of a new agent, in the user's language."""
        names = set(
            Agent.objects.filter(name__startswith=self.key).values_list("name", flat=True)
        )
        name = self.key
        number = 1
        while name in names:
            number += 1
            name = f"{self.key}-{number}"
        members: list[str] = []
        if self.asks_others:
            # The agents that a panel could ask, as far as can be known.
            alone = Agent.objects.filter(enabled=True, mode=Agent.Mode.REACT)
            alone = alone.filter(output_schema__isnull=True).order_by("-is_default", "name")
            members = list(alone.values_list("name", flat=True)[:MAX_MEMBERS])
        values = {
            "name": name,
            "description": str(self.description),
            "instructions": str(self.instructions),
            "tools": self.tools,
            "handoffs": members,
        }
        return values | self.setup

    def initial(self) -> dict[str, Any]:
        """Return a form's initial values; missing tools and agents are omitted."""
        spec = self.spec()
        resolved = agent_spec.resolve(spec)
        columns = {f.name: f.value_from_object(resolved.agent) for f in agent_spec.own_fields()}
        return {**columns, **resolved.many, "given": resolved.links}


DEFAULT_TOOLS = ("calculator", "database", "search")
AGENT_TEMPLATES = [
    AgentTemplate(
        key="assistant",
        title=_("Assistant"),
        description=_("Calculates, searches the documents and queries the database."),
        tools=dict.fromkeys(DEFAULT_TOOLS, {}),
    ),
    AgentTemplate(
        key="careful-assistant",
        title=_("Careful assistant"),
        description=_(
            "Calculates, searches and queries the database, with your approval "
            "for every tool call."
        ),
        tools=dict.fromkeys(DEFAULT_TOOLS, {}),
        setup={"auto_execute_tools": False},
    ),
    AgentTemplate(
        key="researcher",
        title=_("Researcher"),
        description=_("Answers only from the documents and cites every statement."),
        instructions=RESEARCH_PROMPT,
        tools={"search": {"max_calls": 8}},
        setup={"max_steps": 15},
    ),
    AgentTemplate(
        key="analyst",
        title=_("Data analyst"),
        description=_("Answers questions about data in the database, with tables."),
        instructions=ANALYSIS_PROMPT,
        tools={"calculator": {}, "database": {"max_calls": 8}},
        setup={"max_steps": 15},
    ),
    AgentTemplate(
        key="planner",
        title=_("Planner"),
        description=_("Writes a plan for your approval, runs it and checks the results."),
        instructions=PLANNING_PROMPT,
        tools=dict.fromkeys([*DEFAULT_TOOLS, AskPersonTool.name], {}),
        setup={"mode": Agent.Mode.PLAN.value, "shows_plan": True},
    ),
    AgentTemplate(
        key="panel",
        title=_("Panel with a judge"),
        description=_("Asks several agents at once; a judge picks the best answer."),
        instructions=JUDGE_PROMPT,
        setup={"mode": Agent.Mode.PANEL.value, "merge": Agent.Merge.JUDGE.value},
        asks_others=True,
    ),
    AgentTemplate(
        key="reporter",
        title=_("Structured reporter"),
        description=_(
            "Answers in a fixed structure: findings with sources, and open questions."
        ),
        instructions=REPORTING_PROMPT,
        tools=dict.fromkeys(DEFAULT_TOOLS, {}),
        setup={"output_schema": REPORT_SCHEMA},
    ),
]
TEMPLATES_BY_KEY = {template.key: template for template in AGENT_TEMPLATES}
