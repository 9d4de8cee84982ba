"""Error texts as the rules for answers let them through: a person reads them too.

A provider quotes the question, a schema quotes the answer. All events of a run pass here.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from agents.engine.concurrency.thread import aside
from agents.engine.events import Event, Type
from agents.engine.guardrails.checks import Guardrails

from .termination import StopReason

FIELDS: Mapping[Type, tuple[str, ...]] = {
    Type.ERROR: ("message", "advice"),
    Type.STATUS: ("message",),
    Type.STEP: ("error", "reason"),
    Type.RUN_FINISHED: ("detail", "advice"),
    Type.HANDOFF_RETURN: ("detail", "advice"),
}


Events = AsyncGenerator[Event, None]


def filter_errors(events: Events, guardrails: Guardrails) -> Events:
    """The events, with what rules forbid in an error masked, or the text withheld."""
    rules = guardrails.at_any_length()
    return _filtered(events, rules) if rules.watches("output") else events


async def _filtered(events: Events, rules: Guardrails) -> Events:
    async with aclosing(events):
        async for event in events:
            yield await _checked(event, rules) if _is_checked(event) else event


def _is_checked(event: Event) -> bool:
    # A rule that blocked says so, and may well match its own words.
    is_own = event.data.get("stopped_reason") == StopReason.BLOCKED.value
    return event.type in FIELDS and not is_own


async def _checked(event: Event, rules: Guardrails) -> Event:
    texts = {
        name: event.data[name]
        for name in FIELDS[event.type]
        if isinstance(event.data.get(name), str) and event.data[name]
    }
    size = sum(map(len, texts.values()))
    changed = await aside(size, _allowed, texts, rules)
    return replace(event, data={**event.data, **changed}) if changed else event


def _allowed(texts: Mapping[str, str], rules: Guardrails) -> dict[str, Any]:
    changed = {}
    for name, text in texts.items():
        inspected = rules.inspect(text, "output")
        if inspected.is_blocked:
            changed[name] = f"The error message is hidden: {inspected.result.reason}"
        elif inspected.text != text:
            changed[name] = inspected.text
    return changed
