"""Which calls of a step wait for a person, and the requests and permissions for them."""

from typing import Literal

from agents.engine.events import Event, EventType
from agents.engine.tool import Effect, ToolRegistry
from agents.engine.turn.assembly import ToolCall

from ..handoff import Handoff
from ..run_state import RunState
from .approval import (
    GRANTABLE_REASONS,
    ApprovalDecision,
    ApprovalPolicy,
    ApprovalReason,
    AskPersonTool,
    digest,
    fingerprint,
)
from .client_tool import ClientTool
from .tool_fallback import effect
from .tool_runner import ToolRunner


class CallApprovals:
    """The approvals of the open calls of a run."""

    def __init__(
        self, run_state: RunState, tool_runner: ToolRunner, policy: ApprovalPolicy
    ) -> None:
        self.run_state = run_state
        self.tool_runner = tool_runner
        self.policy = policy

    def is_needed(self, call: ToolCall) -> bool:
        """Whether the call still waits for a person."""
        is_settled = call.id in self.run_state.decisions or call.id in self.run_state.barred
        if is_settled or self.tool_runner.misfit(call):
            return False
        return self.reason(call) is not None

    def reason(self, call: ToolCall) -> ApprovalReason | None:
        """Return why the call waits for a person, or None."""
        if call.id in self.run_state.unsure:
            return "unknown"
        why = self.policy.why(call)
        if why in {None, *GRANTABLE_REASONS} and call.id not in self.run_state.started_calls:
            registry = self.tool_runner.registry
            tool = registry.get(call.name) if registry.has(call.name) else None
            # Handoffs and questions have no effect themselves.
            has_effect = not isinstance(tool, Handoff | AskPersonTool)
            if has_effect and self.policy.is_tightened(call, self.run_state.material):
                return "untrusted"
        return "question" if why == "sharing" and call.id in self.run_state.shared else why

    async def apply_grants(self) -> list[Event]:
        """Approve the calls that the user always allows; each has its request and decision."""
        events: list[Event] = []
        for call in filter(self.is_needed, self.run_state.open):
            if self.reason(call) not in GRANTABLE_REASONS:
                continue
            approval = await self.policy.standing(call)
            if approval is None:
                continue
            if call.id not in self.run_state.pending:
                events.append(self._request(call, self.reason(call) or "tool"))
            self.run_state.pending.discard(call.id)
            self.run_state.decisions[call.id] = ApprovalDecision(
                is_approved=True, by=approval.by_name
            )
            resolved = self.run_state.emit(
                EventType.APPROVAL_RESOLVED,
                id=call.id,
                step=self.run_state.requested_approvals[call.id],
                is_approved=True,
                arguments=None,
                reason="",
                by=approval.by,
                by_name=approval.by_name,
                grant={"id": approval.grant, "scope": approval.scope},
            )
            events.append(resolved)
        return events

    def requests(self) -> list[Event]:
        """Request all approvals of this turn at once."""
        return [
            self._request(call, self.reason(call) or "tool")
            for call in filter(self.is_needed, self.run_state.open)
            if call.id not in self.run_state.pending
        ]

    def _request(self, call: ToolCall, why: ApprovalReason) -> Event:
        step = self.run_state.requested_approvals[call.id] = call_step(self.run_state, call)
        self.run_state.pending.add(call.id)
        tool = fingerprint(self.tool_runner.registry.get(call.name))
        return self.run_state.emit(
            EventType.APPROVAL_REQUESTED,
            id=call.id,
            function={"name": call.name, "arguments": call.arguments},
            digest=digest(call, why, self.run_state.emit.seq + 1, tool),
            tool=tool,
            why=why,
            effect=call_effect(self.tool_runner.registry, call),
            # Not visible to others until the run's user has approved.
            role="" if why == "sharing" else self.policy.role(call),
            thought=self.run_state.thought,
            step=step,
            turn=self.run_state.turn,
        )


def call_step(run_state: RunState, call: ToolCall) -> int:
    """Return the call's step, which exists if it was started or has an approval request."""
    step = run_state.started_calls.get(call.id) or run_state.requested_approvals.get(call.id)
    if step is None:
        step = run_state.next_step()
        run_state.progress.record(call)
    return step


def call_effect(registry: ToolRegistry, call: ToolCall) -> Effect | Literal[""]:
    """Return what repeating the call would do; a handoff has no effect itself."""
    tool = registry.get(call.name) if registry.has(call.name) else None
    if tool is None:
        return "read"
    if isinstance(tool, ClientTool):
        return ""  # only the program knows
    # The calls of the other agent may have one.
    is_handoff = isinstance(tool, Handoff) and isinstance(call.readable, dict)
    return "" if is_handoff else effect(tool)
