"""One model request: streams the reply as events, filtered by guardrails."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Literal
from urllib.parse import urlsplit

from agents.engine import fault_injection
from agents.engine.attachments import AttachmentStore
from agents.engine.concurrency.thread import run_in_thread_if_large
from agents.engine.errors import (
    AgentConnectionError,
    AgentError,
    ModelError,
    PlanParseError,
    QuotaExceeded,
)
from agents.engine.events import Event, EventFactory, EventType, StatusKind
from agents.engine.guardrails.checks import (
    GuardrailResult,
    Guardrails,
    StreamGuard,
    by_severity,
)
from agents.engine.planner.model_request import ModelRequest
from agents.engine.planner.react_planner import ReActPlanner, SlowNotice
from agents.engine.planner.reply_readers import TextDelta
from agents.engine.result_cache import CacheMark
from agents.engine.turn.assembly import PlanResult, Turn

from ..capability import ModelHandler
from ..termination import WorkTime
from ..tool_calls.tool_fallback import FallbackStrategy
from .queue_wait import request_slot, wait_in_line
from .usage import turn_usage

Events = AsyncGenerator[Event, None]
RequestBuilder = Callable[[ReActPlanner], ModelRequest]
Pieces = AsyncGenerator[TextDelta | SlowNotice | PlanResult, None]
NO_REQUEST = ModelRequest(messages=[], tools=None, parameters={})


def circuit_keys(planner: ReActPlanner) -> tuple[str, str, str]:
    """Return the provider (host or name), the model and the account, for circuit breakers."""
    provider_model = planner.provider_info.get("provider_model", planner.model)
    netloc = urlsplit(getattr(planner.llm, "base_url", None) or "").netloc
    provider = netloc.rpartition("@")[2] or provider_model.partition("/")[0]
    return provider, planner.model, getattr(planner.llm, "account", "")


class ModelCall:
    """One model request; ends with a `plan`, or a `finding` that blocks it.

    `text_parts` are the visible text. The plan is masked like it; `unmasked` is the original.
    `findings` are all findings of guardrails. `planner` is the one that answered and `request`
    its request, which `build_request` builds for another model; `fallbacks` are the unused
    ones, for later turns. `cached`: the reply was saved earlier. The `phase` is "output" for
    the structured answer after the last turn.
    """

    def __init__(
        self,
        planners: Sequence[ReActPlanner],
        guardrails: Guardrails,
        fallback: FallbackStrategy,
        emit: EventFactory,
        step: int,
        *,
        attachments: AttachmentStore | None = None,
        work_time: WorkTime | None = None,
        handler: ModelHandler | None = None,
    ) -> None:
        """The first of the planners is asked; `handler` calls the hooks of capabilities."""
        self.planner, *self.fallbacks = planners
        self.guardrails = guardrails
        self.retry = fallback.retry
        self.circuits = fallback.circuits
        self.emit = emit
        self.step = step
        self.attachments = attachments
        # Then the answer isn't streamed: a model check reads it first.
        self.holds_answer = guardrails.model_checks.holds_answer()
        self.work_time = work_time or WorkTime()
        self.handler = handler or ModelCall.ask
        self.request = NO_REQUEST
        self.build_request: RequestBuilder | None = None
        self.phase: Literal["turn", "output"] = "turn"
        self.plan: PlanResult | None = None
        self.unmasked: PlanResult | None = None
        self.finding: GuardrailResult | None = None
        self.findings: list[GuardrailResult] = []
        self.text_parts: list[str] = []
        self.cached: CacheMark | None = None
        self.deltas: list[TextDelta] | None = None  # as received, if they are to be saved
        self._has_spoken = False
        self._thought_parts: list[str] = []
        self._answer_tokens = 0  # counted only if the agent has a limit
        self._tries: dict[str, int] = {}

    def events(
        self, request: ModelRequest, build_request: RequestBuilder | None = None
    ) -> Events:
        """Stream the reply to this request, by way of the agent's capabilities.

        `build_request` builds one for another model; without it all get the same.
        """
        self.request = request
        self.build_request = build_request
        return self.handler(self)

    async def ask(self) -> Events:
        """Ask the model; before the first token, retry or fall back to the next model."""
        attempt = 1
        self._tries[self.planner.model] = 0
        while True:
            try:
                async with request_slot(self.planner) as slot:
                    if slot is not None:
                        queue_events = wait_in_line(
                            slot, self.planner, self.emit, self.step, self.work_time
                        )
                        async with aclosing(queue_events) as notices:
                            async for notice in notices:
                                yield notice
                    with self.circuits.guard(*circuit_keys(self.planner)):
                        self._tries[self.planner.model] += 1
                        fault_injection.point("before_model_call")
                        async with aclosing(self.stream_screened(self.request)) as events:
                            async for event in events:
                                yield event
                    if slot is not None and self.plan:
                        messages = self.request.messages
                        used = turn_usage(self.plan, messages, self.planner.count_tokens)
                        slot.spend(used["total_tokens"])
                return
            except AgentError as error:
                is_open = self.circuits.are_refusing(*circuit_keys(self.planner))
                may_retry = not self._has_spoken and not is_open
                is_refusal = may_retry and self.planner.refuses_schema(self.request, error)
                wait = self.retry.wait(error, attempt) if may_retry else None
                wait = 0.0 if is_refusal else wait
                if wait is not None:
                    notice = self.emit(
                        EventType.STATUS,
                        kind=StatusKind.RETRY,
                        message=str(error),
                        seconds=round(wait, 1),
                        attempt=attempt + 1,
                        step=self.step,
                    )
                elif self._may_fall_back(error):
                    notice = self._fall_back(error)
                else:
                    raise
            if (wait is None or is_refusal) and self.build_request is not None:
                # In a thread, because counting the tokens of a long history takes a while.
                self.request = await asyncio.to_thread(self.build_request, self.planner)
            yield notice
            attempt = 1 if wait is None else attempt + 1
            if wait is not None:
                await asyncio.sleep(wait)

    def _may_fall_back(self, error: AgentError) -> bool:
        """Return whether another model can be asked; if none is left, list those tried."""
        if isinstance(error, PlanParseError):
            return False  # it has answered, so it gets to correct itself
        is_of_model = isinstance(error, ModelError | AgentConnectionError) or (
            # A limit of this model alone doesn't concern the next one.
            isinstance(error, QuotaExceeded) and error.is_of_model
        )
        if self._has_spoken or not is_of_model:
            return False
        if self.fallbacks:
            return True
        if len(self._tries) > 1 or sum(self._tries.values()) > 1:
            count_labels = {0: " (failing)", 1: ""}
            tried = [
                f"{model}{count_labels.get(n, f' ({n}×)')}" for model, n in self._tries.items()
            ]
            error.add_models(", ".join(tried))
        return False

    async def stream_screened(
        self, request: ModelRequest, saved: Pieces | None = None
    ) -> Events:
        """Stream one reply, or a saved one, through the output guardrails."""
        guards = {kind: self.guardrails.screen_output() for kind in ("thought", "answer")}
        try:
            async with aclosing(
                saved or self.planner.stream(request, self.attachments)
            ) as pieces:
                async for piece in pieces:
                    if isinstance(piece, PlanResult):
                        self.plan = piece
                        continue
                    if isinstance(piece, SlowNotice):
                        yield self.emit(
                            EventType.STATUS,
                            kind=StatusKind.SLOW,
                            seconds=piece.seconds,
                            step=self.step,
                        )
                        continue
                    if self.deltas is not None:
                        self.deltas.append(piece)
                    guard = guards[piece.kind]
                    if text := guard.feed(self._within_limit(piece)):
                        for event in self._delta_events(piece.kind, text):
                            yield event
                    if guard.is_blocked:
                        self.finding = guard.finding
                        break
                    if self._is_full:
                        break
        except AgentError:
            # Held text belongs to the output so far; without any output, drop it.
            for event in await self._flush_guards(guards) if self._has_spoken else ():
                yield event
            raise
        for event in await self._flush_guards(guards) if self.finding is None else ():
            yield event
        if self._is_full:
            text = "".join(self.text_parts)
            thought = "".join(self._thought_parts)
            turn = Turn(content=text, reasoning=thought, finish_reason="length")
            self.plan = PlanResult(thought=thought, final_answer=text, turn=turn)
        await self._collect_findings(guards)

    @property
    def _is_full(self) -> bool:
        max_tokens = self.guardrails.max_output_tokens
        return max_tokens is not None and self._answer_tokens > max_tokens

    def _within_limit(self, piece: TextDelta) -> str:
        """Return the text up to the agent's limit, which not every provider observes."""
        max_tokens = self.guardrails.max_output_tokens
        if max_tokens is None or piece.kind == "thought":
            return piece.text
        tokens = self.guardrails.count_tokens(piece.text)
        tokens_left = max_tokens - self._answer_tokens
        self._answer_tokens += tokens
        if tokens <= tokens_left:
            return piece.text
        return piece.text[: len(piece.text) * tokens_left // tokens]

    async def _flush_guards(self, guards: Mapping[str, StreamGuard]) -> list[Event]:
        """Return the text held back, unless something in it blocks it all."""

        def rests() -> dict[str, str]:
            return {kind: guard.rest() for kind, guard in guards.items()}

        held_texts = await run_in_thread_if_large(
            sum(guard.held_chars for guard in guards.values()), rests
        )
        blocked = [guard.finding for guard in guards.values() if guard.is_blocked]
        self.finding = next(iter(blocked), None)
        if blocked:
            return []
        texts = [(kind, text) for kind, text in held_texts.items() if text]
        return [event for kind, text in texts for event in self._delta_events(kind, text)]

    async def _collect_findings(self, guards: Mapping[str, StreamGuard]) -> None:
        """Collect one finding per rule and remove masked or blocked text from the plan."""
        findings = [f for guard in guards.values() for f in guard.findings]
        by_rule = {f.details["rule"]: f for f in reversed(findings)}
        self.findings = by_severity(by_rule.values())
        self.unmasked = self.plan
        if self.plan is None or not findings:
            return
        if self.finding is not None:
            self.block(self.finding)
        else:
            size = len(self.plan.turn.content) + len(self.plan.turn.reasoning)
            self.plan = await run_in_thread_if_large(size, self._mask_plan, self.plan)

    def block(self, finding: GuardrailResult) -> None:
        """Remove everything the model said from the plan; its usage stays."""
        self.finding = finding
        turn = self.plan.turn if self.plan else Turn()
        blank_turn = Turn(usage=turn.usage, model=turn.model, finish_reason=turn.finish_reason)
        self.plan = PlanResult(turn=blank_turn)

    def release(self) -> list[Event]:
        """Return the answer that was held back."""
        text = "".join(self.text_parts) if self.holds_answer else ""
        return [self.emit(EventType.DELTA, content=text, step=self.step)] if text else []

    def _mask_plan(self, plan: PlanResult) -> PlanResult:
        def mask_text(text: str) -> str:
            return self.guardrails.without_length_limits().inspect(text, "output").text

        answer = plan.final_answer
        return replace(
            plan,
            thought=mask_text(plan.thought),
            final_answer=None if answer is None else mask_text(answer),
            turn=replace(
                plan.turn,
                content=mask_text(plan.turn.content),
                reasoning=mask_text(plan.turn.reasoning),
            ),
        )

    def _delta_events(self, kind: str, text: str) -> list[Event]:
        if not self.holds_answer or kind == "thought":
            return [self._delta_event(kind, text)]
        self._has_spoken = True
        self.text_parts.append(text)
        return []

    def _delta_event(self, kind: str, text: str) -> Event:
        self._has_spoken = True
        fault_injection.point("during_model_stream")
        if kind == "thought":
            self._thought_parts.append(text)
            return self.emit(EventType.THOUGHT_DELTA, content=text, step=self.step)
        self.text_parts.append(text)
        return self.emit(EventType.DELTA, content=text, step=self.step)

    def _fall_back(self, error: AgentError) -> Event:
        """Switch to the next model for this and later turns."""
        failed_model = self.planner.model
        self.planner, *self.fallbacks = self.fallbacks
        self._tries[self.planner.model] = 0
        return self.emit(
            EventType.STATUS,
            kind=StatusKind.MODEL_FALLBACK,
            message=str(error),
            step=self.step,
            **{"from": failed_model, "to": self.planner.model, **self.planner.provider_info},
        )
