"""Guardrails over the question of a run and over its answer."""

from collections.abc import Collection
from dataclasses import dataclass

from agents.engine.concurrency.thread import run_in_thread_if_large
from agents.engine.events import Event
from agents.engine.guardrails.checks import GuardrailResult, Guardrails, by_severity
from agents.engine.guardrails.patterns import Stage

from ..lifecycle_events import finding_events, finish_event
from ..run_state import RunState
from ..termination import StopReason

UNJUDGED_STAGES: dict[str, Stage] = {"user": "input", "assistant": "output"}
LEFT_OUT_PROMPT = "[This was left out because a guardrail blocks it.]"


async def check_question(run_state: RunState, guardrails: Guardrails) -> list[Event]:
    """Mask the question, or end the run if a guardrail blocks it."""
    is_nested = run_state.emit.parent is not None
    query = run_state.query
    applied_guardrails = guardrails.without_length_limits() if is_nested else guardrails
    inspected = await run_in_thread_if_large(
        len(query), applied_guardrails.inspect, query, "input"
    )
    findings = list(inspected.findings)
    if not inspected.is_blocked:
        findings += await guardrails.model_checks.judge(inspected.text, "input")
    blocked = next((finding for finding in findings if finding.blocks), None)
    # The first event has everything needed to continue, should the run be interrupted after
    # it: the worst finding, and the masked text.
    is_masked = inspected.text != query and blocked is None
    masked = {"text": inspected.text} if is_masked else {}
    events = list[Event]()
    for finding in by_severity(findings):
        events += finding_events(run_state, finding, **masked)
        masked = {}
    if blocked is not None:
        events.append(finish_event(run_state, StopReason.BLOCKED, detail=blocked.reason))
    elif is_masked:
        run_state.replace_query(inspected.text)
    return events


async def screen_history(
    run_state: RunState, guardrails: Guardrails, *, is_new: bool
) -> list[Event]:
    """Leave out of the history what no model check has judged, if one blocks it.

    Imported messages and corrected ones are `is_unjudged`; all others were judged when they
    were sent or written. After an interruption (not `is_new`) the findings are on record.
    """
    state = run_state.state
    events = list[Event]()
    unjudged = [message for message in state.get_messages() if "is_unjudged" in message]
    blocked_roles = set[str]()
    for role, stage in UNJUDGED_STAGES.items() if unjudged else ():
        text = "\n\n".join(m["content"] or "" for m in unjudged if m["role"] == role)
        findings = await guardrails.model_checks.judge(text, stage, holding=True)
        for finding in findings if is_new else ():
            events += finding_events(run_state, finding, history=True)
        if any(finding.blocks for finding in findings):
            blocked_roles.add(role)
    if unjudged:
        state.leave_out_unjudged(blocked_roles, LEFT_OUT_PROMPT)
    return events


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenedAnswer:
    """An answer as it can be displayed, unless it is `blocked`."""

    text: str
    findings: tuple[GuardrailResult, ...]
    blocked: GuardrailResult | None


async def screen_answer(
    run_state: RunState, guardrails: Guardrails, text: str, known_rules: Collection[str]
) -> ScreenedAnswer:
    """Check the answer; `known_rules` have reported what they found while it was streamed.

    Its length is no reason to take it away: a model's text ends at the limit (`ModelCall`).
    """
    applied_guardrails = guardrails.without_length_limits()
    inspected = await run_in_thread_if_large(
        len(text), applied_guardrails.inspect, text, "output"
    )
    findings = [f for f in inspected.findings if f.details.get("rule") not in known_rules]
    if not inspected.is_blocked:
        # By the checks that haven't judged it before it was released.
        findings += await guardrails.model_checks.judge(
            inspected.text,
            "output",
            holding=False if text == run_state.judged_answer else None,
            skip=run_state.judged_rules,
        )
    blocked = next((f for f in findings if f.blocks), None)
    if blocked is None and inspected.is_blocked:
        blocked = inspected.result
    return ScreenedAnswer(text=inspected.text, findings=tuple(findings), blocked=blocked)
