"""A single model request outside of a run, under the same limits and guardrails."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import dataclass, field
from typing import Any

from agents.engine import fault_injection
from agents.engine.errors import AgentConnectionError, AgentError, ModelError, PlanParseError
from agents.engine.events import EventFactory
from agents.engine.guardrails.checks import Guardrails
from agents.engine.planner.model_request import ModelRequest
from agents.engine.planner.react_planner import ReActPlanner
from agents.engine.privacy.pseudonyms import ALIAS_INSTRUCTIONS
from agents.engine.resilience.circuit_breaker import Circuits
from agents.engine.resilience.rate_limiter import acquire_slot
from agents.engine.resilience.retry import RetryPolicy
from agents.engine.sentences import Sentence as _
from agents.engine.state import Message

from ..tool_calls.tool_fallback import FallbackStrategy
from .model_call import ModelCall, circuit_keys
from .usage import turn_usage


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainReply:
    """What the model answered, and how many tokens that took."""

    text: str
    tokens: int
    usage: Mapping[str, Any] = field(default_factory=dict)


async def ask_once(
    planners: Sequence[ReActPlanner],
    guardrails: Guardrails,
    circuits: Circuits,
    messages: list[Message],
    *,
    max_tokens: int,
) -> PlainReply:
    """Ask the first of these models that works, without tools and without retries.

    Raises an AgentError. A reply that a guardrail blocks is empty.
    """
    call = ModelCall(
        [plain_planner(planner) for planner in planners],
        guardrails,
        FallbackStrategy(retry=RetryPolicy(max_retries=0), circuits=circuits),
        EventFactory(""),  # its events are discarded
        0,
    )
    request = plain_request(call.planner, messages, max_tokens)
    async with aclosing(
        call.events(request, lambda fallback: plain_request(fallback, messages, max_tokens))
    ) as events:
        async for _event in events:
            pass
    if call.plan is None:
        raise AgentError(_("The model returned an empty response."))
    usage = turn_usage(call.plan, call.request.messages, guardrails.count_tokens)
    text = "" if call.finding else call.plan.final_answer or ""
    usage_with_model = {**usage, "model": call.planner.model}
    return PlainReply(text=text, tokens=usage["total_tokens"], usage=usage_with_model)


async def ask_briefly(
    planners: Sequence[ReActPlanner],
    guardrails: Guardrails,
    circuits: Circuits,
    messages: list[Message],
    *,
    max_tokens: int,
) -> PlainReply:
    """Ask like `ask_once`, for a reply of a line: it is read and screened as a whole."""
    for planner in planners[:-1]:
        try:
            return await _ask(planner, guardrails, circuits, messages, max_tokens)
        except PlanParseError:
            raise  # it has answered
        except (ModelError, AgentConnectionError):
            continue
    return await _ask(planners[-1], guardrails, circuits, messages, max_tokens)


async def _ask(
    planner: ReActPlanner,
    guardrails: Guardrails,
    circuits: Circuits,
    messages: list[Message],
    max_tokens: int,
) -> PlainReply:
    request = plain_request(planner, messages, max_tokens)
    limiter = planner.rate_limiter
    async with acquire_slot(limiter, planner.model) if limiter else nullcontext() as slot:
        with circuits.guard(*circuit_keys(planner)):
            fault_injection.point("before_model_call")
            plan = await planner.reply(request)
        usage = turn_usage(plan, request.messages, guardrails.count_tokens)
        if slot is not None:
            slot.spend(usage["total_tokens"])
    inspected = guardrails.inspect(plan.final_answer or "", "output")
    text = "" if inspected.is_blocked else inspected.text
    usage_with_model = {**usage, "model": planner.model}
    return PlainReply(text=text, tokens=usage["total_tokens"], usage=usage_with_model)


def plain_request(
    planner: ReActPlanner, messages: list[Message], max_tokens: int
) -> ModelRequest:
    """Return a request without tools; the planner's own limit applies too."""
    if planner.pseudonymizer is not None:
        aliases: Message = {"role": "system", "content": ALIAS_INSTRUCTIONS}
        messages = [aliases, *planner.pseudonymize(messages)]
    max_tokens = min(max_tokens, planner.parameters.get("max_tokens", max_tokens))
    parameters = {**planner.parameters, "max_tokens": max_tokens}
    return ModelRequest(messages=messages, tools=None, parameters=parameters)


def plain_planner(planner: ReActPlanner) -> ReActPlanner:
    """Return the planner for a request that has its own instructions and no tools."""
    plain = planner.with_instructions("")
    plain.dialect = "native"
    return plain
