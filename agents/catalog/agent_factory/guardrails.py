"""An agent's guardrails, from their rows."""

from collections.abc import Iterable
from typing import cast

from django.db.models import QuerySet

from agents.db.configuration_rows import configuration_query
from agents.engine.guardrails import (
    GuardrailAction,
    Guardrails,
    Inspection,
    ModelChecks,
    Pattern,
    Stage,
)
from agents.llm import tokens
from agents.models import Agent, GuardrailPattern, Run


def inspect_input(agent: Agent, text: str) -> Inspection:
    """Return what the agent's guardrails make of a question."""
    return guardrails_from(agent, _patterns(agent.pk)).inspect(text, "input")


def guardrail_names() -> list[str]:
    rows = GuardrailPattern.objects.filter(enabled=True)
    return list(rows.values_list("name", flat=True))


def active_patterns(run: Run, agent: Agent) -> list[GuardrailPattern]:
    off = run.overrides.get("guardrails_off", ())
    return [row for row in _patterns(agent.pk) if row.name not in off]


@configuration_query
def _patterns(agent: int) -> QuerySet[GuardrailPattern]:
    return GuardrailPattern.objects.for_agent(agent)


def build_guardrails(agent: Agent) -> Guardrails:
    """Return an agent's guardrails, to check text outside a run."""
    return guardrails_from(agent, _patterns(agent.pk))


def guardrails_from(
    agent: Agent, rows: Iterable[GuardrailPattern], checks: ModelChecks | None = None
) -> Guardrails:
    """Return the guardrails; model checks only apply in a run."""
    return Guardrails(
        agent.max_input_tokens,
        agent.max_output_tokens,
        [pattern_from(row) for row in rows if not row.is_model_check],
        count_tokens=tokens.count,
        model_checks=checks,
    )


def pattern_from(row: GuardrailPattern) -> Pattern:
    return Pattern(
        pattern=row.pattern,
        is_words=row.is_words,
        name=row.name,
        stage=cast(Stage, row.stage),
        action=GuardrailAction(row.action),
        message=row.message,
        is_observed=row.is_observed,
        id=row.pk,
    )
