"""Example questions for new chats: of the sample agents, and of the built-in tools."""

from collections.abc import Collection, Mapping
from functools import cache

from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext, gettext_noop

from agents.db.installation.branding import START_QUESTIONS
from agents.db.installation.setting import ROWS
from agents.models import Agent

# xgettext:no-python-format
_PERCENTAGE = gettext_noop("What is 12.5% of 3480?")
_BEST_SELLERS = gettext_noop("Which five products brought in the most this year?")
_STOPPING = gettext_noop("How do I stop a run, and what happens to it?")
_REFUNDS = gettext_noop("How many orders were refunded?")

# For agents without questions of their own.
BY_TOOL: Mapping[str, str] = {
    "calculator": _PERCENTAGE,
    "database": _BEST_SELLERS,
    "search": _STOPPING,
}
BY_AGENT: Mapping[str, tuple[str, ...]] = {
    "careful": (
        gettext_noop("What was the revenue by month this year?"),
        _REFUNDS,
        gettext_noop("What is the average order amount?"),
    ),
    "reporter": (
        gettext_noop("Top 5 products by revenue"),
        gettext_noop("Revenue by category"),
        gettext_noop("Revenue by month this year"),
    ),
    "lead": (
        gettext_noop("Ask helper: What sold best this year?"),
        gettext_noop("Ask reporter: Top 5 products by revenue"),
    ),
    "planner": (
        gettext_noop("Compare this year's best month with last year's and explain."),
        gettext_noop("Compare revenue in Tokyo with Osaka this year and explain."),
        gettext_noop("What was the average monthly revenue this year?"),
    ),
    "librarian": (
        _STOPPING,
        gettext_noop("How do I connect a real model?"),
        gettext_noop("Where are my secrets kept?"),
    ),
    "panel": (_REFUNDS, _STOPPING),
}


def for_agent(agent: Agent, tools: Collection[str]) -> list[str]:
    """Return the agent's questions, else the installation's, else those of its tools."""
    if lines := agent.example_lines:
        return [localize(line) for line in lines]
    if questions := START_QUESTIONS.find(ROWS.get(), translation.get_language()):
        return questions.splitlines()
    return [gettext(question) for tool, question in BY_TOOL.items() if tool in tools]


def localize(question: str) -> str:
    """Translate a question of the sample agents, no matter in which language it was saved."""
    original = _originals().get(question)
    return gettext(original) if original else question


@cache
def _originals() -> dict[str, str]:
    """Return the questions as written here by their text in each language."""
    questions = {
        *BY_TOOL.values(),
        *(question for agent_questions in BY_AGENT.values() for question in agent_questions),
    }
    originals: dict[str, str] = {}
    for language, _name in settings.LANGUAGES:
        with translation.override(language):
            originals |= {gettext(question): question for question in questions}
    return originals
