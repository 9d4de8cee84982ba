"""What a new agent can start from: descriptions of agents that have proved themselves."""

from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext_lazy as _

from agents.catalog import agent_spec
from agents.catalog.agent_spec import Description
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
    "You answer from the documents and from nothing else. Search them with several wordings "
    "before you say that something is not in them, and cite each statement by the number of "
    "its passage in brackets. Where passages contradict each other, say so and cite both. "
    "Answer in the language of the question, in Markdown, and briefly."
)
ANALYSIS_PROMPT = _(
    "You answer questions about figures from the database. Look at the tables and their "
    "columns first; never guess a name or a figure. Calculate with the calculator what the "
    "database does not calculate itself. Show figures as a table, say which period and which "
    "rows they are about, and put what they mean in one sentence before it."
)
PLANNING_PROMPT = _(
    "You take on work that needs several steps. Split it into steps whose results can be "
    "checked, do at the same time what does not depend on each other, and ask a person only "
    "for what nobody else can know. In the end say what was done, what came of it, and what "
    "is left open."
)
JUDGE_PROMPT = _(
    "You compare what the members of the panel say. Prefer what is backed by sources and "
    "figures over what merely sounds certain, and say in what they differ."
)
REPORTING_PROMPT = _(
    "You find out what is asked and report it in a fixed form. Each finding is one statement "
    "with its source: the passage of a document, or the query of the database. What you could "
    "not find out is an open question, never a finding."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTemplate:
    """A kind of agent: how it is called and told of, and what is set up in it."""

    key: str
    title: Any
    about: Any
    instructions: Any = ""
    tools: dict[str, dict[str, Any]] = field(default_factory=dict)
    setup: Description = field(default_factory=dict)
    asks_others: bool = False

    def description(self) -> Description:
        """As an agent of its own, in the language of whoever starts from it."""
        told = {"description": str(self.about), "instructions": str(self.instructions)}
        members = _panel_members() if self.asks_others else []
        about = {"name": _unused_name(self.key), "tools": self.tools, "handoffs": members}
        return about | told | self.setup

    def initial(self) -> dict[str, Any]:
        """What a form begins with; tools and agents that are not there are left out."""
        told = self.description()
        made = agent_spec.resolve(told)
        columns = {f.name: f.value_from_object(made.agent) for f in agent_spec.own_fields()}
        return {**columns, **made.many, "given": made.links}


DEFAULT_TOOLS = ("calculator", "database", "search")
AGENT_TEMPLATES = [
    AgentTemplate(
        key="assistant",
        title=_("Assistant"),
        about=_("Calculates, searches the documents and asks the database."),
        tools=dict.fromkeys(DEFAULT_TOOLS, {}),
    ),
    AgentTemplate(
        key="careful-assistant",
        title=_("Careful assistant"),
        about=_("The same, but shows every call first and waits for your word."),
        tools=dict.fromkeys(DEFAULT_TOOLS, {}),
        setup={"auto_execute_tools": False},
    ),
    AgentTemplate(
        key="researcher",
        title=_("Researcher"),
        about=_("Answers from the documents alone, and cites every statement."),
        instructions=RESEARCH_PROMPT,
        tools={"search": {"max_calls": 8}},
        setup={"max_steps": 15},
    ),
    AgentTemplate(
        key="analyst",
        title=_("Data analyst"),
        about=_("Answers questions about figures from the database, with tables."),
        instructions=ANALYSIS_PROMPT,
        tools={"calculator": {}, "database": {"max_calls": 8}},
        setup={"max_steps": 15},
    ),
    AgentTemplate(
        key="planner",
        title=_("Planner"),
        about=_("Writes a plan first, shows it, carries it out and checks what came of it."),
        instructions=PLANNING_PROMPT,
        tools=dict.fromkeys([*DEFAULT_TOOLS, AskPersonTool.name], {}),
        setup={"mode": Agent.Mode.PLAN.value, "shows_plan": True},
    ),
    AgentTemplate(
        key="panel",
        title=_("Panel with a judge"),
        about=_("Asks several agents at once, and a judge decides between their answers."),
        instructions=JUDGE_PROMPT,
        setup={"mode": Agent.Mode.PANEL.value, "merge": Agent.Merge.JUDGE.value},
        asks_others=True,
    ),
    AgentTemplate(
        key="reporter",
        title=_("Structured reporter"),
        about=_("Answers in a fixed form: findings with their sources, and open questions."),
        instructions=REPORTING_PROMPT,
        tools=dict.fromkeys(DEFAULT_TOOLS, {}),
        setup={"output_schema": REPORT_SCHEMA},
    ),
]
TEMPLATES_BY_KEY = {starter.key: starter for starter in AGENT_TEMPLATES}


def _panel_members() -> list[str]:
    """Those that a panel could ask, as far as anybody can know."""
    alone = Agent.objects.filter(enabled=True, mode=Agent.Mode.REACT)
    alone = alone.filter(output_schema__isnull=True)
    names = alone.order_by("-is_default", "name").values_list("name", flat=True)
    return list(names[:MAX_MEMBERS])


def _unused_name(name: str) -> str:
    taken = set(Agent.objects.filter(name__startswith=name).values_list("name", flat=True))
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}-{number}"
    return found
