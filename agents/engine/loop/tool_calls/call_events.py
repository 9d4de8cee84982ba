"""The events of tool calls: the call, its result, and why it wasn't made."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

from agents.engine.attachments import refs_of
from agents.engine.events import Event, EventType, StatusKind
from agents.engine.guardrails.checks import GuardrailResult, Inspection
from agents.engine.sentences import Sentence as _
from agents.engine.sentences import as_error
from agents.engine.state import AgentStep, Message
from agents.engine.text import cut_text
from agents.engine.tool import ToolResult
from agents.engine.turn.assembly import ToolCall

from ..lifecycle_events import finding_events
from ..run_state import RunState
from .approval import ApprovalDecision
from .tool_fallback import FallbackResult

MAX_OBSERVATION_CHARS = 200_000
PREVIEW_CHARS = 200


class CallEvents:
    """Reports the calls of one step; `call_fields` has a call's step, turn and start."""

    def __init__(self, run_state: RunState, opening: Message | None = None) -> None:
        """`opening` is the message with the calls, if no model wrote it."""
        self.run_state = run_state
        self.opening = opening

    def call(self, call: ToolCall, call_fields: dict[str, Any], **fields: Any) -> Event:
        """Report the call itself, before it is made."""
        return self.run_state.emit(
            EventType.TOOL_CALL,
            id=call.id,
            function={"name": call.name, "arguments": call.arguments},
            **({"messages": [self.opening]} if self.opening else {}),
            **fields,
            **call_fields,
        )

    def findings(
        self, call: ToolCall, call_fields: dict[str, Any], findings: Sequence[GuardrailResult]
    ) -> list[Event]:
        """Report what guardrails found in a call or its result."""
        fields = {"tool": call.name, "call": call_fields["step"]}
        event_lists = (
            finding_events(self.run_state, finding, **fields) for finding in findings
        )
        return list(chain.from_iterable(event_lists))

    def result(
        self,
        call: ToolCall,
        effective_call: ToolCall,
        outcome: FallbackResult,
        call_fields: dict[str, Any],
    ) -> list[Event]:
        """Report the outcome of a call; `effective_call` has a person's changes."""
        result = outcome.result
        is_error = outcome.result.is_error
        decision = self.run_state.decisions.get(call.id)
        text = cut_text(result.text, MAX_OBSERVATION_CHARS)
        observation = decision.annotate(text) if decision else text
        used = {"stand_in": outcome.stand_in} if outcome.stand_in else {}
        details: dict[str, Any] = {
            "note": result.note,
            "is_data": result.is_data and not is_error,
            "error_type": type(outcome.failure).__name__ if outcome.failure else "",
            **used,
            "tried": outcome.tried,
            "failed_tool": outcome.failed_tool(effective_call.name),
            "attachments": list(outcome.attachments),
            "is_untrusted": outcome.is_untrusted,
            "suspicion": outcome.suspicion,
            "cached": outcome.cached.to_dict() if outcome.cached else None,
        }
        present_details = {name: value for name, value in details.items() if value}
        if result.sources is not None and not is_error:
            present_details["sources"] = [source.to_dict() for source in result.sources]
        status = "failed" if is_error else "done"
        ended = self.run_state.emit.clock.at(outcome.ended).isoformat()
        return [
            self._response(
                effective_call,
                observation,
                is_error,
                outcome.attempts,
                call_fields,
                **present_details,
            ),
            *self.findings(effective_call, call_fields, outcome.findings),
            *self._statuses(effective_call, outcome, call_fields["step"]),
            self._step(effective_call, status, observation, call_fields, ended=ended, **used),
        ]

    def _statuses(self, call: ToolCall, outcome: FallbackResult, step: int) -> list[Event]:
        """Report a fallback tool, a suspicious result, or that the tool is degraded."""
        emit = self.run_state.emit
        events = list[Event]()
        if outcome.stand_in is not None:
            fallback = emit(
                EventType.STATUS,
                kind=StatusKind.TOOL_FALLBACK,
                tool=call.name,
                stand_in=outcome.stand_in,
                message=outcome.reason,
                step=step,
                **({"is_preferred": True} if outcome.is_preferred else {}),
            )
            events.append(fallback)
        if outcome.suspicion:
            event = emit(
                EventType.STATUS,
                kind=StatusKind.EMBEDDED_INSTRUCTIONS,
                tool=call.name,
                message=outcome.suspicion,
                step=step,
            )
            events.append(event)
        if outcome.degraded:
            events.append(
                emit(EventType.STATUS, kind=StatusKind.DEGRADED, tool=call.name, step=step)
            )
        return events

    def blocked(
        self, call: ToolCall, findings: Sequence[GuardrailResult], call_fields: dict[str, Any]
    ) -> list[Event]:
        """Report a call that a guardrail blocked; the model learns why and continues."""
        events = list[Event]()
        if call.id not in self.run_state.started_calls:
            events.append(self.call(call, call_fields, effect="", is_barred=True))
            events += self.findings(call, call_fields, findings)
        reason = Inspection(findings=tuple(findings)).result.reason
        observation = as_error(
            _(
                "the tool wasn't called. %(reason)s Don't repeat the call. Continue without it "
                "or with other arguments.",
                reason=reason,
            )
        )
        return [
            *events,
            self._response(call, observation, True, 0, call_fields),
            self._step(call, "blocked", observation, call_fields),
        ]

    def answer(
        self, call: ToolCall, result: ToolResult, call_fields: dict[str, Any]
    ) -> list[Event]:
        """Report a person's answer."""
        status = "rejected" if result.is_error else "done"
        return [
            self._response(call, result.text, result.is_error, 1, call_fields),
            self._step(call, status, result.text, call_fields),
        ]

    def declined(
        self, call: ToolCall, decision: ApprovalDecision, call_fields: dict[str, Any]
    ) -> list[Event]:
        """Report a call that a person rejected, or confirmed as made before an interruption."""
        was_made = call.id in self.run_state.unsure
        observation = decision.outcome if was_made else decision.refusal
        return [
            self._response(call, observation, not was_made, 0, call_fields),
            self._step(call, "done" if was_made else "rejected", observation, call_fields),
        ]

    def _response(
        self,
        call: ToolCall,
        observation: str,
        is_error: bool,
        attempts: int,
        call_fields: dict[str, Any],
        **details: Any,
    ) -> Event:
        untrusted = bool(details.get("is_untrusted"))
        self.run_state.close(call, observation, refs_of(details), is_untrusted=untrusted)
        self.run_state.material.record({**details, **call_fields})
        self.run_state.note_impossible(call_fields["turn"], details.get("error_type", ""))
        self.run_state.state.add_step(
            AgentStep(
                thought=self.run_state.thought,
                action=call.name,
                action_input=call.readable,
                observation=observation,
            )
        )
        return self.run_state.emit(
            EventType.TOOL_RESPONSE,
            tool_call_id=call.id,
            name=call.name,
            content_preview=observation[:PREVIEW_CHARS],
            content=observation,
            is_error=is_error,
            attempts=attempts,
            **details,
            **call_fields,
        )

    def _step(
        self,
        call: ToolCall,
        status: str,
        observation: str,
        call_fields: dict[str, Any],
        *,
        stand_in: str = "",
        **fields: Any,
    ) -> Event:
        return self.run_state.emit(
            EventType.STEP,
            kind="tool",
            status=status,
            thought=self.run_state.thought,
            # The result is the work of the tool that was actually used.
            action=stand_in or call.name,
            action_input=call.arguments,
            observation=observation[:PREVIEW_CHARS],
            **({"called": call.name} if stand_in else {}),
            **fields,
            **call_fields,
        )
