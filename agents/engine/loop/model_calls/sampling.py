"""Answers a tool's requests with the agent's model, under the run's limits and guardrails."""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from agents.engine.call_context import SamplingRefused, SamplingReply, SamplingRequest
from agents.engine.concurrency.thread import run_in_thread_if_large
from agents.engine.errors import AgentError
from agents.engine.events import EventFactory
from agents.engine.guardrails.checks import GuardrailResult
from agents.engine.guardrails.patterns import Stage
from agents.engine.planner.model_request import ModelRequest
from agents.engine.planner.react_planner import ReActPlanner
from agents.engine.sentences import Sentence as _
from agents.engine.state import Message

from ..capability import Capability
from ..run_state import RunState
from .model_call import ModelCall
from .plain_request import plain_planner, plain_request
from .usage import turn_usage

if TYPE_CHECKING:
    from ..runtime import AgentRuntime

MAX_SAMPLING_TOKENS = 4_096
MAX_STOP_SEQUENCES = 4
NOT_ALLOWED = _("This agent doesn't let servers use its model.")


class Sampling(Capability):
    """Tools of servers can use the agent's model."""


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
            if self.agent.find(Sampling) is None:
                raise SamplingRefused(NOT_ALLOWED)
            progress = self.run_state.progress
            limits = (budget.reached_limit(progress) for budget in self.run_state.budgets)
            if reached := next(filter(None, limits), ""):
                raise SamplingRefused(reached)
            if not request.messages:
                raise SamplingRefused(_("The request has no messages."))
            if any(not isinstance(m.get("content"), str) for m in request.messages):
                raise SamplingRefused(_("Only text can be sent to the model this way."))
            return await self._answer(request, sample)

    async def _answer(self, request: SamplingRequest, sample: Sample) -> SamplingReply:
        findings = sample.findings
        messages = list[Message]()
        if request.system:
            messages.append({"role": "system", "content": request.system})
        messages += [dict(message) for message in request.messages]
        # Guardrails apply to what a tool sends to the model, as to its results.
        for message in messages:
            text, why = await self._screen(message["content"], "tool_output", findings)
            if why:
                raise SamplingRefused(_("The request was blocked: %(reason)s", reason=why))
            message["content"] = text
        # Plain text: no tools, and the server's own instructions.
        call = ModelCall(
            [plain_planner(planner) for planner in self.agent.planners],
            self.agent.guardrails,
            self.agent.fallback,
            EventFactory(self.agent.name),  # for events that nobody reads
            0,
        )
        model_request = self._request(call.planner, messages, request)
        try:
            async with aclosing(call.events(model_request)) as events:
                async for _event in events:
                    pass  # the reply isn't for the user, so it isn't streamed
        except AgentError as error:
            raise SamplingRefused(str(error)) from error
        if call.plan is not None:
            usage = turn_usage(call.plan, call.request.messages, call.guardrails.count_tokens)
            self.run_state.progress.used.add(usage)
            sample.usage = {**usage, "model": call.planner.model}
        findings += call.findings
        if call.finding is not None:
            raise SamplingRefused(
                _("The model's response was blocked: %(reason)s", reason=call.finding.reason)
            )
        text = (call.plan.final_answer if call.plan else None) or ""
        text, why = await self._screen(text, "tool_input", findings)
        if why:
            raise SamplingRefused(_("The model's response was blocked: %(reason)s", reason=why))
        is_cut = call.plan is not None and call.plan.turn.finish_reason == "length"
        reason = "maxTokens" if is_cut else "endTurn"
        return SamplingReply(text=text, model=call.planner.model, stop_reason=reason)

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

    def _request(
        self, planner: ReActPlanner, messages: list[Message], request: SamplingRequest
    ) -> ModelRequest:
        max_tokens = min(max(1, request.max_tokens or MAX_SAMPLING_TOKENS), MAX_SAMPLING_TOKENS)
        plain = plain_request(planner, messages, max_tokens)
        parameters = dict(plain.parameters)
        # Some models reject a temperature, so only one that has it already gets another.
        if request.temperature is not None and "temperature" in parameters:
            parameters["temperature"] = request.temperature
        if request.stop:
            parameters["stop"] = list(request.stop[:MAX_STOP_SEQUENCES])
        return replace(plain, parameters=parameters)
