"""Tests a model check on a sample. It costs, so it says how much first."""

from collections.abc import Sequence
from dataclasses import dataclass

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from agents.access import masking
from agents.catalog import agent_factory
from agents.catalog.language_models import model_clients
from agents.engine.guardrails import GuardrailResult, ModelChecks, Stage
from agents.llm import tokens
from agents.metering.budgets import NO_PAYER, Payer
from agents.models import GuardrailPattern

REPLY_TOKENS = 60  # of a usual verdict
STAGES: tuple[Stage, ...] = ("input", "output", "tool_output")


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a test will take; the cost is None if the model has no price."""

    calls: int
    tokens: int
    cost: float | None


def estimate(row: GuardrailPattern, texts: Sequence[str]) -> Estimate:
    """Return about how many tokens the calls take, and what they cost."""
    check = agent_factory.build_check(row, payer=NO_PAYER)  # it isn't asked
    requests = [message for text in texts for message in check.messages(text, "input")]
    input_tokens = sum(tokens.count(message["content"]) for message in requests)
    output_tokens = REPLY_TOKENS * len(texts)
    price = model_clients.model_price(row.model)
    cost = None
    if price is not None:
        cost = input_tokens * price.input + output_tokens * price.output
    return Estimate(calls=len(texts), tokens=input_tokens + output_tokens, cost=cost)


def judge_sample(user: User, row: GuardrailPattern, text: str) -> GuardrailResult:
    """Return the verdict on a sample; personal data is masked first."""
    check = agent_factory.build_check(row, payer=Payer(user=user.pk))
    judge = async_to_sync(ModelChecks([check], tokens.count).judge)
    stage = next(stage for stage in STAGES if check.applies_to(stage))
    [finding] = judge(masking.mask_value(text), stage)
    return finding
