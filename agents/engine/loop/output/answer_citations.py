"""Checks the citations of an answer: only what was in the prompt can be cited."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from agents.engine.events import Event, EventType, StatusKind
from agents.engine.material.citations import (
    CitationCheck,
    check_citations,
    listed_numbers,
)
from agents.engine.material.output_citations import (
    OutputCheck,
    check_output_citations,
    output_numbers,
)

from ..capability import Answer, Capability
from ..run_state import RunState
from .output_schema import OutputSchema, to_markdown

if TYPE_CHECKING:
    from ..run_loop import RunLoop

MAX_EARLIER = 20
MAX_EARLIER_CHARS = 2_000


class Citations(Capability):
    """Numbers in brackets are citations once the run has searched; invalid ones are removed."""

    async def after_run(self, run: "RunLoop", answer: Answer) -> list[Event]:
        run_state = run.run_state
        schema = run.agent.output
        checked, answer.output = check_final(run_state, answer.text, answer.output, schema)
        answer.text = checked.text
        return citation_events(run_state, checked, answer.output)


def check_answer(run_state: RunState, text: str) -> CitationCheck:
    """Check an answer's citations, if the run has searched; otherwise [1] may mean anything."""
    material = run_state.material
    if not material.has_searched:
        return CitationCheck(text)
    citable = {*material.citable, *material.earlier}
    checked = check_citations(text, citable)
    if not checked.removed:
        return checked
    # Rare, so only now: other results with numbers, and brackets that are quoted.
    results = [
        m["content"] or "" for m in run_state.state.get_messages() if m["role"] == "tool"
    ]

    def is_quoted(citation: str) -> bool:
        if citation in run_state.query:
            return True
        return "," in citation and any(citation in result for result in results)

    return check_citations(text, citable | listed_numbers(results), is_quoted)


def check_output(
    run_state: RunState, value: Any, is_valid: Callable[[Any], bool]
) -> OutputCheck:
    """Check a structured answer's citations; what the schema requires stays."""
    material = run_state.material
    if not material.has_searched:
        return OutputCheck(value)
    citable = {*material.citable, *material.earlier}
    check_text = partial(check_answer, run_state)
    for fields in (True, False):
        checked = check_output_citations(value, citable.__contains__, check_text, fields=fields)
        if not checked.removed or is_valid(checked.value):
            return checked
    return OutputCheck(value)


def check_final(
    run_state: RunState, text: str, output: Any, schema: OutputSchema | None
) -> tuple[CitationCheck, Any]:
    """Return the answer and the structured answer with the citations that are valid."""
    if output is None:
        return check_answer(run_state, text), None
    is_valid = schema.accepts if schema is not None else lambda _value: True
    checked_output = check_output(run_state, output, is_valid)
    value = checked_output.value
    if text == to_markdown(output):
        return CitationCheck(to_markdown(value), checked_output.removed), value
    checked = check_answer(run_state, text)
    return replace(checked, removed=checked_output.removed or checked.removed), value


def citation_events(
    run_state: RunState, checked: CitationCheck, output: Any = None
) -> list[Event]:
    """Note in the answer's step what was removed, and what it cites of earlier answers."""
    emit = run_state.emit
    step = run_state.step
    events = list[Event]()
    if run_state.has_checked_citations:
        return events  # before an interruption
    if checked.removed:
        event = emit(
            EventType.STATUS,
            kind=StatusKind.CITATIONS_REMOVED,
            numbers=list(checked.removed),
            step=step,
        )
        events.append(event)
    # Passages that earlier runs of the chat found and this answer cites.
    material = run_state.material
    if material.earlier:
        numbers = set(output_numbers(output if output is not None else checked.text))
        cited = sorted(numbers & material.earlier.keys() - material.citable)
        sources = [
            {**material.sources[n].to_dict(), "text": material.earlier[n][:MAX_EARLIER_CHARS]}
            for n in cited[:MAX_EARLIER]
        ]
        if sources:
            event = emit(
                EventType.STATUS, kind=StatusKind.EARLIER_SOURCES, sources=sources, step=step
            )
            events.append(event)
    return events
