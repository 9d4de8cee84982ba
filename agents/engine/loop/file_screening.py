"""Guardrails over the text of the user's files, with the rules for messages."""

from agents.engine.concurrency.thread import run_in_thread_if_large
from agents.engine.events import Event
from agents.engine.guardrails.checks import Guardrails
from agents.engine.material.file_parts import ScreenedFiles, screen_files

from .lifecycle_events import finish_event, guardrail_event
from .run_state import RunState
from .termination import StopReason


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
    asked = screened.get(state.question.get("material", ""), ScreenedFiles(""))
    state.map_material(lambda text: screened[text].text)
    events = list[Event]()
    for found in asked.findings if is_new else ():
        events.append(guardrail_event(run_state, found.finding, file=found.file))
    if asked.blocked_by is not None:
        detail = _blocked_message(asked.blocked_by.file, asked.blocked_by.finding.reason)
        events.append(finish_event(run_state, StopReason.BLOCKED, detail=detail))
    return events


def _screen_all(texts: list[str], guardrails: Guardrails) -> dict[str, ScreenedFiles]:
    return {text: screen_files(text, guardrails) for text in texts}


def _blocked_message(file: str, reason: str) -> str:
    return f"The file “{file}” was blocked: {reason}"
