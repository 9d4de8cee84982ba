"""Model checks from their rows: how the judge is asked, and what it may cost per day."""

from collections.abc import Iterable
from datetime import date
from functools import partial
from typing import cast

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from agents.db import database
from agents.engine.errors import AgentError
from agents.engine.guardrails import (
    CheckLimitReached,
    GuardrailAction,
    Guardrails,
    JudgeReply,
    ModelCheck,
    ModelChecks,
    Stage,
)
from agents.engine.loop import ask_once
from agents.engine.planner import ReActPlanner
from agents.engine.privacy import Pseudonymizer
from agents.engine.sentences import Sentence as _
from agents.engine.state import Message
from agents.llm import tokens
from agents.metering.budgets import Payer
from agents.models import GuardrailPattern, GuardrailUsage

from ..language_models import planner_factory
from .circuits import CIRCUITS

# For a verdict with its reason, and for what a reasoning model thinks before.
MAX_REPLY_TOKENS = 1_000
REQUEST_TOKENS = 400  # of what is around the rule and the text
# In parts of a few words, everything would pass, whatever the whole text says.
MIN_PART_TOKENS = 100


def build_checks(
    rows: Iterable[GuardrailPattern],
    pseudonymizer: Pseudonymizer | None = None,
    *,
    payer: Payer,
) -> ModelChecks:
    """Return the model checks among these rows.

    With a pseudonymizer, personal data is replaced before it reaches the judge.
    """
    checks = [
        build_check(row, pseudonymizer, payer=payer) for row in rows if row.is_model_check
    ]
    return ModelChecks(checks, tokens.count)


def build_check(
    row: GuardrailPattern, pseudonymizer: Pseudonymizer | None = None, *, payer: Payer
) -> ModelCheck:
    """Return one check, which needn't be saved."""
    planner = planner_factory.build_judge(
        row.model, MAX_REPLY_TOKENS, pseudonymizer, payer=payer
    )
    window = planner_factory.model_window(row.model)
    free_tokens = window - MAX_REPLY_TOKENS - REQUEST_TOKENS - tokens.count(row.rubric)
    return ModelCheck(
        name=row.name,
        rubric=row.rubric,
        ask=partial(_ask, planner, row.pk, row.max_daily_cost),
        model=row.model,
        stage=cast(Stage, row.stage),
        action=GuardrailAction(row.action),
        message=row.message,
        is_observed=row.is_observed,
        id=row.pk,
        threshold=row.threshold,
        blocks_on_failure=row.on_failure == GuardrailPattern.Failure.BLOCK,
        max_calls=row.max_calls,
        max_call_tokens=min(row.max_call_tokens, free_tokens)
        if free_tokens >= MIN_PART_TOKENS
        else 0,
        timeout=float(row.timeout),
    )


async def _ask(
    planner: ReActPlanner, pk: int | None, max_cost: float | None, messages: list[Message]
) -> JudgeReply:
    """Ask the judge within its daily budget; raise an AgentError."""
    if pk is not None:
        await database.run(_start_call, pk, max_cost)
    try:
        reply = await ask_once(
            [planner], Guardrails(), CIRCUITS, messages, max_tokens=MAX_REPLY_TOKENS
        )
    except AgentError:
        if pk is not None:
            await database.run(_add, pk, failures=1)
        raise
    if pk is not None:
        await database.run(_add, pk, tokens=reply.tokens, cost=reply.usage.get("cost") or 0.0)
    return JudgeReply(text=reply.text, usage=reply.usage)


def cost_today(pk: int) -> float:
    """Return what a check has cost since midnight, in USD."""
    rows = GuardrailUsage.objects.filter(pattern=pk, day=_today())
    return next(iter(rows.values_list("cost", flat=True)), 0.0)


def _start_call(pk: int, max_cost: float | None) -> None:
    """Count a call before it is made, so that one that is never answered counts, too."""
    if max_cost is not None and cost_today(pk) >= max_cost:
        raise CheckLimitReached(
            _("The daily limit of $%(limit)s is used up.", limit=f"{max_cost:,.2f}")
        )
    _add(pk, calls=1)


def _add(pk: int, **amounts: float) -> None:
    rows = GuardrailUsage.objects.filter(pattern=pk, day=_today())
    changes = {name: F(name) + amount for name, amount in amounts.items()}
    if rows.update(**changes) or not GuardrailPattern.objects.filter(pk=pk).exists():
        return
    try:
        with transaction.atomic():
            GuardrailUsage.objects.create(pattern_id=pk, day=_today(), **amounts)
    except IntegrityError:  # another process was first
        rows.update(**changes)


def _today() -> date:
    return timezone.localdate(timezone=timezone.get_default_timezone())
