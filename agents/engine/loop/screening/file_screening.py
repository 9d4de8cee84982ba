"""Guardrails and model checks over the text of the user's files, as for messages."""

from agents.engine.concurrency.thread import run_in_thread_if_large
from agents.engine.events import Event
from agents.engine.guardrails.checks import Guardrails
from agents.engine.material.file_parts import (
    FileFinding,
    ScreenedFiles,
    named_parts,
    screen_files,
)
from agents.engine.sentences import Sentence as _

from ..lifecycle_events import finding_events, finish_event, guardrail_event
from ..run_state import RunState
from ..termination import StopReason


async def screen_run_files(
    run_state: RunState, guardrails: Guardrails, *, is_new: bool
) -> list[Event]:
    """Mask the files of a run; a file of the question that is blocked ends it.

    Files of earlier messages are left out instead, as otherwise no later message could be
    answered. After an interruption (not `is_new`) the findings are already on record.
    """
    state = run_state.state
    texts = dict.fromkeys(
        m["material"] for m in [*state.get_messages(), state.question] if "material" in m
    )
    if not texts:
        return []
    size = sum(map(len, texts))
    screened = await run_in_thread_if_large(size, _screen_all, list(texts), guardrails)
    question_files = screened.get(state.question.get("material", ""), ScreenedFiles(""))
    state.map_material(lambda text: screened[text].text)
    events = list[Event]()
    for file_finding in question_files.findings if is_new else ():
        events.append(guardrail_event(run_state, file_finding.finding, file=file_finding.file))
    blocked = question_files.blocked_by
    if blocked is None and run_state.turn == 0:  # later, they have been judged
        judged = await _judge_files(question_files.text, guardrails)
        for file_finding in judged if is_new else ():
            events += finding_events(run_state, file_finding.finding, file=file_finding.file)
        blocked = next((finding for finding in judged if finding.finding.blocks), None)
    if blocked is not None:
        detail = _(
            "The file “%(words)s” was blocked: %(reason)s",
            words=blocked.file,
            reason=blocked.finding.reason,
        )
        events.append(finish_event(run_state, StopReason.BLOCKED, detail=detail))
    return events


async def _judge_files(text: str, guardrails: Guardrails) -> list[FileFinding]:
    """Have each file judged by the model checks for messages, up to one that is blocked."""
    file_findings: list[FileFinding] = []
    checks = guardrails.model_checks
    for name, file_text in named_parts(text) if checks.for_stage("input") else ():
        findings = await checks.judge(file_text, "input")
        file_findings += [FileFinding(name, finding) for finding in findings]
        if any(finding.blocks for finding in findings):
            break
    return file_findings


def _screen_all(texts: list[str], guardrails: Guardrails) -> dict[str, ScreenedFiles]:
    return {text: screen_files(text, guardrails) for text in texts}
