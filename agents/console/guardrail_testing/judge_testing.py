"""Tests a model check: on a sample, or on recent texts. It costs, so it says how much first."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, cast

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from agents.access import audit, masking
from agents.budgets import NO_PAYER, Payer, check_calls
from agents.catalog import agent_factory, model_clients
from agents.engine.guardrails import GuardrailResult, ModelCheck, ModelChecks, Pattern, Stage
from agents.llm import model_info, tokens
from agents.models import GuardrailPattern, Run
from agents.web.presentation import trace_url

from . import backtest

SAMPLE_SIZES = (10, 25, 50)
CONCURRENCY = 4
TIMEOUT_SECONDS = 90.0
MAX_EXAMPLES = 10
EXCERPT_CHARS = 300
REPLY_TOKENS = 60  # of a usual verdict
STAGES: tuple[Stage, ...] = ("input", "output", "tool_output")


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a test will take; the cost is None if the model has no price."""

    calls: int
    tokens: int
    cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedText:
    """A text and its verdict."""

    finding: GuardrailResult
    text: str = ""
    run: int | None = None
    stage: str = ""
    agent: str = ""

    @property
    def judge(self) -> dict[str, Any]:
        return dict(self.finding.details["judge"])

    @property
    def is_violation(self) -> bool:
        return bool(self.finding.details["matches"])

    @property
    def href(self) -> str:
        return trace_url(self.run) if self.run is not None else ""

    @property
    def stage_label(self) -> str:
        return str(GuardrailPattern.Stage(self.stage).label) if self.stage else ""


@dataclass(slots=True, kw_only=True)
class JudgeBacktest:
    judged: list[JudgedText] = field(default_factory=list)
    is_late: bool = False

    @property
    def violations(self) -> list[JudgedText]:
        return [each for each in self.judged if each.is_violation]

    @property
    def failures(self) -> list[JudgedText]:
        return [each for each in self.judged if "error" in each.judge]

    @property
    def examples(self) -> list[JudgedText]:
        return self.violations[:MAX_EXAMPLES]

    @property
    def cost(self) -> float:
        return sum(each.finding.usage.get("cost") or 0 for each in self.judged)


def estimate(row: GuardrailPattern, texts: Sequence[str]) -> Estimate:
    """Return about how many tokens the calls take, and what they cost."""
    check = agent_factory.build_check(row, payer=NO_PAYER)  # it isn't asked
    sent = sum(_request_tokens(check, text) for text in texts)
    received = REPLY_TOKENS * len(texts)
    price = _price(row.model)
    cost = None if price is None else sent * price.input + received * price.output
    return Estimate(calls=len(texts), tokens=sent + received, cost=cost)


def _request_tokens(check: ModelCheck, text: str) -> int:
    return sum(tokens.count(message["content"]) for message in check.messages(text, "input"))


def _price(name: str) -> model_info.Price | None:
    return model_clients.model_price(name)


def judge_sample(user: User, row: GuardrailPattern, text: str) -> JudgedText:
    """Return the verdict on a sample; personal data is masked first."""
    judge = async_to_sync(_checks(user, row).judge)
    [finding] = judge(masking.mask_value(text), _stage(row))
    return JudgedText(finding=finding)


def recent_texts(
    user: User, row: GuardrailPattern, size: int, agents: Sequence[int] = ()
) -> list[backtest.RunText]:
    """Return the newest texts that the check would have judged, without personal data."""
    runs = Run.objects.in_scope(user).executed().order_by("-pk")
    runs = runs.filter(agent__in=agents) if agents else runs
    run_ids = list(runs.values_list("pk", flat=True)[:size])
    pattern = Pattern(pattern="x", stage=cast(Stage, row.stage))
    run_texts = backtest.masked_texts(run_ids, pattern)
    return list(islice((run_text for run_text in run_texts if run_text.text.strip()), size))


def run_backtest(
    user: User, row: GuardrailPattern, texts: Sequence[backtest.RunText]
) -> JudgeBacktest:
    """Judge these texts; raise QuotaExceeded if the user has no tokens left today."""
    check_calls(user)
    outcome = async_to_sync(_judge_all)(_checks(user, row), texts)
    run_ids = {each.run for each in outcome.examples if each.run is not None}
    audit.record_views(user, Run.objects.filter(pk__in=run_ids), "backtest")
    return outcome


async def _judge_all(checks: ModelChecks, texts: Sequence[backtest.RunText]) -> JudgeBacktest:
    outcome = JudgeBacktest()
    deadline = time.monotonic() + TIMEOUT_SECONDS
    semaphore = asyncio.Semaphore(CONCURRENCY)

    async def judge(run_text: backtest.RunText) -> None:
        async with semaphore:
            if time.monotonic() > deadline:
                outcome.is_late = True
                return
            [finding] = await checks.judge(run_text.text, run_text.stage)
        outcome.judged.append(
            JudgedText(
                finding=finding,
                text=run_text.text[:EXCERPT_CHARS],
                run=run_text.run,
                stage=run_text.stage,
                agent=run_text.agent,
            )
        )

    await asyncio.gather(*map(judge, texts))
    return outcome


def _checks(user: User, row: GuardrailPattern) -> ModelChecks:
    """Return the check; what it uses is counted for the user who tests it."""
    check = agent_factory.build_check(row, payer=Payer(user=user.pk))
    return ModelChecks([check], tokens.count)


def _stage(row: GuardrailPattern) -> Stage:
    return next(stage for stage in STAGES if row.stage in {stage, "both"})
