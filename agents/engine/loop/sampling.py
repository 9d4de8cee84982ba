"""Answers a tool's requests with the agent's model, under the run's limits and guardrails."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agents.engine.call_context import SamplingRefused, SamplingReply, SamplingRequest
from agents.engine.concurrency.thread import run_in_thread_if_large
from agents.engine.errors import AgentError
from agents.engine.events import EventFactory
from agents.engine.guardrails.checks import GuardrailResult
from agents.engine.guardrails.patterns import Stage
from agents.engine.planner.model_request import ModelRequest
from agents.engine.planner.react_planner import ReActPlanner
from agents.engine.privacy.pseudonyms import ALIAS_INSTRUCTIONS
from agents.engine.state import Message

from .model_call import ModelCall
from .run_state import RunState
from .usage import turn_usage

if TYPE_CHECKING:
    from .runtime import AgentRuntime

MAX_SAMPLING_TOKENS = 4_096
MAX_STOP_SEQUENCES = 4
NOT_ALLOWED = "This agent doesn't let servers use its model."


@dataclass(slots=True)
class Sample:
    """One request: what it used and what guardrails found, even if it is refused."""

    usage: Mapping[str, Any] = field(default_factory=dict)
    findings: list[GuardrailResult] = field(default_factory=list)


class Sampler:
    """Answers the requests of one run's tools."""

    def __init__(self, agent: "AgentRuntime", run_state: RunState) -> None:
        self.agent = agent
        self.run_state = run_state
        self._lock = asyncio.Lock()

    async def answer(self, request: SamplingRequest, sample: Sample) -> SamplingReply:
        """Ask the model; raise SamplingRefused with a sentence for the server."""
        # One at a time: what the others use must count before a limit is checked.
        async with self._lock:
            return await self._answer(request, sample)

    async def _answer(self, request: SamplingRequest, sample: Sample) -> SamplingReply:
        self._check_allowed(request)
        findings = sample.findings
        messages = [await self._screen_message(m, findings) for m in _messages(request)]
        call = self._model_call()
        model_request = self._request(call.planner, messages, request)
        try:
            async with aclosing(call.events(model_request)) as events:
                async for _event in events:
                    pass  # the reply isn't for the user, so it isn't streamed
        except AgentError as error:
            raise SamplingRefused(str(error)) from error
        sample.usage = self._record_usage(call, model_request)
        findings += call.findings
        if call.finding is not None:
            raise SamplingRefused(f"The model's reply was blocked: {call.finding.reason}")
        text = (call.plan.final_answer if call.plan else None) or ""
        text, why = await self._screen(text, "tool_input", findings)
        if why:
            raise SamplingRefused(f"The model's reply was blocked: {why}")
        model = call.planner.model
        reason = _stop_reason(call)
        return SamplingReply(text=text, model=model, stop_reason=reason)

    def _check_allowed(self, request: SamplingRequest) -> None:
        if not self.agent.allows_sampling:
            raise SamplingRefused(NOT_ALLOWED)
        progress = self.run_state.progress
        limits = (budget.reached_limit(progress) for budget in self.run_state.budgets)
        if reached := next(filter(None, limits), ""):
            raise SamplingRefused(reached)
        if not request.messages:
            raise SamplingRefused("The request has no messages.")
        if any(not isinstance(message.get("content"), str) for message in request.messages):
            raise SamplingRefused("Only text can be sent to the model this way.")

    async def _screen_message(
        self, message: Message, findings: list[GuardrailResult]
    ) -> Message:
        """Apply guardrails to what a tool sends to the model, as to its results."""
        text, why = await self._screen(message["content"], "tool_output", findings)
        if why:
            raise SamplingRefused(f"The request was blocked: {why}")
        return {**message, "content": text}

    async def _screen(
        self, text: str, stage: Stage, findings: list[GuardrailResult]
    ) -> tuple[str, str]:
        """Return the text with its masks, and why it is blocked, if it is."""
        guardrails = self.agent.guardrails
        if not guardrails.applies_to(stage):
            return text, ""
        inspected = await run_in_thread_if_large(len(text), guardrails.inspect, text, stage)
        findings += inspected.findings
        return inspected.text, inspected.result.reason if inspected.is_blocked else ""

    def _model_call(self) -> ModelCall:
        """Return a call with plain text: no tools, and the server's own instructions."""
        agent = self.agent
        planner, *others = [_plain(p) for p in (agent.planner, *agent.fallback_planners)]
        return ModelCall(
            planner,
            agent.guardrails,
            agent.retry,
            EventFactory(agent.name),  # for events that nobody reads
            0,
            fallbacks=others,
            circuits=agent.circuits,
        )

    def _request(
        self, planner: ReActPlanner, messages: list[Message], request: SamplingRequest
    ) -> ModelRequest:
        if planner.pseudonymizer is not None:
            aliases: Message = {"role": "system", "content": ALIAS_INSTRUCTIONS}
            messages = [aliases, *planner.pseudonymize(messages)]
        own = planner.parameters
        wanted = request.max_tokens or MAX_SAMPLING_TOKENS
        most = min(max(1, wanted), MAX_SAMPLING_TOKENS, own.get("max_tokens", wanted))
        parameters: dict[str, Any] = {**own, "max_tokens": most}
        # Some models reject a temperature, so only one that has it already gets another.
        if request.temperature is not None and "temperature" in own:
            parameters["temperature"] = request.temperature
        if request.stop:
            parameters["stop"] = list(request.stop[:MAX_STOP_SEQUENCES])
        return ModelRequest(messages=messages, tools=None, parameters=parameters)

    def _record_usage(self, call: ModelCall, request: ModelRequest) -> dict[str, Any]:
        if call.plan is None:
            return {}
        sent_messages = call.request.messages if call.request else request.messages
        usage = turn_usage(call.plan, sent_messages, call.guardrails.count_tokens)
        self.run_state.progress.used.add(usage)
        return {**usage, "model": call.planner.model}


def _messages(request: SamplingRequest) -> list[Message]:
    system: Sequence[Message] = (
        [{"role": "system", "content": request.system}] if request.system else []
    )
    return [*system, *(dict(message) for message in request.messages)]


def _plain(planner: ReActPlanner) -> ReActPlanner:
    plain = planner.with_instructions("")
    plain.dialect = "native"
    return plain


def _stop_reason(call: ModelCall) -> str:
    reason = call.plan.turn.finish_reason if call.plan else ""
    return "maxTokens" if reason == "length" else "endTurn"
