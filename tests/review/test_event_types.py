"""Every event type and status kind is known wherever people read of it.

See the recipe for an event type in CONTRIBUTING.md.
"""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

import agents
from agents.engine.events import DELTA_TYPES, Event, EventType, StatusKind
from agents.review.replays.replay_timeline import HIDDEN_TYPES, describe_event
from agents.runs.projection import HANDLERS
from agents.web.presentation.steps import step_notes

SOURCES = Path(agents.__file__).parent
# Changes no row: streamed text, and what begins or ends the work of another agent.
UNPROJECTED = {*DELTA_TYPES, EventType.THOUGHT, EventType.HANDOFF, EventType.HANDOFF_RETURN}
# Its sentence is about the whole run.
ABOUT_THE_RUN = {EventType.RUN_FINISHED}
TIMELINE_TYPES = {*EventType} - {*DELTA_TYPES, *HIDDEN_TYPES} - ABOUT_THE_RUN


def facts(**known):
    return defaultdict(lambda: 1, known)


@pytest.mark.parametrize("kind", StatusKind)
def test_every_status_kind_has_a_message(kind):
    assert step_notes.note_sentence(facts(kind=kind, used=[1]))


def test_every_status_event_names_a_listed_kind():
    sources = [p for p in SOURCES.rglob("*.py") if "StatusKind." in p.read_text()]
    kinds = {kind for path in sources for kind in emitted_kinds(path)}

    assert kinds == {f"StatusKind.{kind.name}" for kind in StatusKind}


def emitted_kinds(path):
    """The kinds of the `status` events that a module emits, as they stand in its source."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and "EventType.STATUS" in map(ast.unparse, node.args):
            yield from (ast.unparse(word.value) for word in node.keywords if word.arg == "kind")
        if isinstance(node, ast.Dict):  # facts that the run's first step starts with
            pairs = zip(node.keys, node.values, strict=True)
            values = [ast.unparse(value) for key, value in pairs if _is_kind(key)]
            yield from (value for value in values if value.startswith("StatusKind."))


def _is_kind(key):
    return isinstance(key, ast.Constant) and key.value == "kind"


@pytest.mark.parametrize("type", sorted(TIMELINE_TYPES))
def test_every_event_has_a_message_on_the_timeline(type):
    common = {"function": {"name": "x"}, "status": "done", "description": "x", "message": "x"}
    variants = [facts(**common, reason="x", kind=kind) for kind in ("tool", "task", "resumed")]

    events = [Event(type=type, data=data, agent="helper") for data in variants]

    assert any(describe_event(event) for event in events)


def test_every_event_changes_rows_or_is_known_to_change_none():
    assert {*HANDLERS} == {*EventType} - UNPROJECTED


def test_the_architecture_lists_every_event_type():
    table = (SOURCES.parent / "ARCHITECTURE.md").read_text().split("## Events")[1]

    assert [type for type in EventType if f"`{type}`" not in table] == []
