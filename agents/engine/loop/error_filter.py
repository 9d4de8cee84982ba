"""Applies output guardrails to error texts, which users read too.

A provider quotes the question, a schema quotes the answer. All events of a run pass through
here.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from agents.engine.concurrency.thread import run_in_thread_if_large
from agents.engine.events import Event, EventType
from agents.engine.guardrails.checks import Guardrails

from .termination import StopReason

ERROR_FIELDS: Mapping[EventType, tuple[str, ...]] = {
    EventType.ERROR: ("message", "advice"),
    EventType.STATUS: ("message",),
    EventType.STEP: ("error", "reason"),
    EventType.RUN_FINISHED: ("detail", "advice"),
    EventType.HANDOFF_RETURN: ("detail", "advice"),
}


Events = AsyncGenerator[Event, None]


def filter_errors(events: Events, guardrails: Guardrails) -> Events:
    """Mask what guardrails forbid in error events, or withhold the text."""
    rules = guardrails.without_length_limits()
    return _filter_stream(events, rules) if rules.applies_to("output") else events


async def _filter_stream(events: Events, rules: Guardrails) -> Events:
    async with aclosing(events):
        async for event in events:
            yield await _filter_event(event, rules) if _needs_check(event) else event


def _needs_check(event: Event) -> bool:
    # A blocking rule's own message may match its pattern.
    is_own = event.data.get("stopped_reason") == StopReason.BLOCKED.value
    return event.type in ERROR_FIELDS and not is_own


async def _filter_event(event: Event, rules: Guardrails) -> Event:
    texts = {
        name: event.data[name]
        for name in ERROR_FIELDS[event.type]
        if isinstance(event.data.get(name), str) and event.data[name]
    }
    size = sum(map(len, texts.values()))
    changed = await run_in_thread_if_large(size, _filter_texts, texts, rules)
    return replace(event, data={**event.data, **changed}) if changed else event


def _filter_texts(texts: Mapping[str, str], rules: Guardrails) -> dict[str, Any]:
    changed = {}
    for name, text in texts.items():
        inspected = rules.inspect(text, "output")
        if inspected.is_blocked:
            changed[name] = f"The error message is hidden: {inspected.result.reason}"
        elif inspected.text != text:
            changed[name] = inspected.text
    return changed
