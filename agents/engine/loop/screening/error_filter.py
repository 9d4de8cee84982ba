"""Applies output guardrails to error texts, which users read too.

A provider quotes the question, a schema quotes the answer. All events of a run pass through
here.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agents.engine.concurrency.thread import run_in_thread_if_large
from agents.engine.events import Event, EventType
from agents.engine.guardrails.checks import Guardrails
from agents.engine.sentences import Sentence as _

from ..termination import StopReason

ERROR_FIELDS: Mapping[EventType, tuple[str, ...]] = {
    EventType.ERROR: ("message", "advice"),
    EventType.STATUS: ("message",),
    EventType.STEP: ("error", "reason"),
    EventType.RUN_FINISHED: ("detail", "advice"),
    EventType.HANDOFF_RETURN: ("detail", "advice"),
}


class ErrorFilter:
    """Masks what guardrails forbid in error events, or withholds the text."""

    def __init__(self, guardrails: Guardrails) -> None:
        self._guardrails = guardrails
        self._is_needed = guardrails.applies_to("output")

    def applies_to(self, event: Event) -> bool:
        if not self._is_needed or event.type not in ERROR_FIELDS:
            return False
        # A blocking rule's own message may match its pattern.
        return bool(event.data.get("stopped_reason") != StopReason.BLOCKED.value)

    async def filter(self, event: Event) -> Event:
        texts = {
            name: event.data[name]
            for name in ERROR_FIELDS[event.type]
            if isinstance(event.data.get(name), str) and event.data[name]
        }
        if not texts:  # as in most events
            return event
        size = sum(map(len, texts.values()))
        guardrails = self._guardrails.without_length_limits()
        changed = await run_in_thread_if_large(size, _filter_texts, texts, guardrails)
        return replace(event, data={**event.data, **changed}) if changed else event


def _filter_texts(texts: Mapping[str, str], guardrails: Guardrails) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    for name, text in texts.items():
        inspected = guardrails.inspect(text, "output")
        if inspected.is_blocked:
            changed[name] = _(
                "The error message is hidden: %(sentence)s", sentence=inspected.result.reason
            )
        elif inspected.text != text:
            changed[name] = inspected.text
    return changed
