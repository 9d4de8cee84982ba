"""After a stop every call with effects is listed, with its outcome."""

import asyncio

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agents import runs
from agents.catalog.language_models import model_clients
from agents.catalog.tools import tool_factory
from agents.engine.events import EventFactory, EventType
from agents.engine.loop.termination import StopReason
from agents.engine.state import NOT_STARTED, repair_history
from agents.engine.testing import Call, Says, ScriptedModel
from agents.engine.tool import ToolResult
from agents.models import AgentStep, Approval, Run
from agents.runs import event_store, executor, leases, service
from agents.web.presentation import BARE, RunView
from agents.web.presentation.run_fragments import run_section
from agents.web.presentation.steps.effects import MAX_CALLS
from tests.conftest import run_question, verify_run

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

NOW = "2040-01-01T00:00:00+00:00"


class Letter:
    """A tool that sends the first letter at once, and all others slowly."""

    name, description, timeout, effect = "calculator", "Sends a letter.", 30, "at_most_once"
    needs_approval = False

    def __init__(self):
        self.is_slow = asyncio.Event()

    async def execute(self, input):
        if input.get("to") == "a":
            return ToolResult("Sent.")
        self.is_slow.set()
        await asyncio.sleep(60)


@pytest.fixture
def letter(monkeypatch):
    tool = Letter()
    monkeypatch.setitem(tool_factory.BUILT_IN_TOOLS, "calculator", lambda: tool)
    calls = tuple(Call("calculator", {"to": to}) for to in "abc")
    model = ScriptedModel(Says("", calls), Says(answer="Never said."))
    monkeypatch.setattr(model_clients, "llm_by_name", lambda name: model)
    return tool


async def start_run():
    run = await sync_to_async(runs.prepare)(query="Write to all.", topic="chat.1")
    runs.launch(run)
    return run


async def calls(run):
    steps = run.steps.filter(kind="tool").order_by("number")
    return [(step.status, step.effect) async for step in steps]


def displayed_effects(run):
    """Return the side effects as displayed: what, and the outcome."""
    effects = RunView(Run.objects.get(pk=run.pk)).effects
    return [(call.intent, call.outcome_label) for call in effects.calls]


async def test_calls_that_were_not_started_get_a_row(letter):
    run = await start_run()
    await letter.is_slow.wait()

    await runs.stop(run)

    run = await verify_run(run)
    assert await calls(run) == [
        ("done", "at_most_once"),
        ("unknown", "at_most_once"),
        ("unstarted", "at_most_once"),
    ]
    assert run.tool_calls == 2
    assert await sync_to_async(displayed_effects)(run) == [
        ("calculator: a", "done"),
        ("calculator: b", "may have completed"),
        ("calculator: c", "not started"),
    ]
    history = await sync_to_async(event_store.transcript)(run)
    assert repair_history(history) == history
    assert [m["content"] for m in history if m["role"] == "tool"][-1] == NOT_STARTED


async def test_a_call_that_waits_for_approval_was_not_started(letter):
    letter.needs_approval = True
    run = await run_question("Write to all.", topic="chat.1")
    assert run.status == "waiting"

    await runs.stop(run)

    run = await verify_run(run)
    assert await calls(run) == [("unstarted", "at_most_once")] * 3


async def test_a_call_of_a_dead_process_is_uncertain(letter, monkeypatch):
    monkeypatch.setattr(service, "STOP_TIMEOUT_SECONDS", 0.05)
    run = await start_run()
    await letter.is_slow.wait()
    task = executor.current().tasks.pop(run.pk)
    del executor.current().runs[run.pk]
    await sync_to_async(leases.release)(run)

    await runs.stop(run)

    assert [status for status, _ in await calls(run)] == ["done", "unknown", "unstarted"]
    task.cancel()
    await asyncio.wait([task])


def call_event(emit, step, id, effect="at_most_once", **more):
    function = {"name": "send", "arguments": f'{{"to": "{id}"}}'}
    about = {"turn": 1, "started": NOW, "effect": effect}
    return emit(EventType.TOOL_CALL, step=step, id=id, function=function, **about, **more)


def decision_event(emit, step, *ids, **more):
    calls = [
        {
            "id": id,
            "function": {"name": "send", "arguments": f'{{"to": "{id}"}}'},
            "effect": "at_most_once",
        }
        for id in ids
    ]
    return emit(EventType.STEP, step=step, kind="thought", status="done", calls=calls, **more)


@pytest.fixture
def run():
    return Run.objects.create(topic="chat.1", query="What is it?", agent_name="helper")


def close(run, *events, reason=StopReason.CANCELLED, **about):
    event_store.save([(run.pk, event) for event in events])
    event_store.close(run.pk, event_store.Ending(reason, **about))
    return [(s.action, s.parent, s.status) for s in run.steps.filter(kind="tool")]


def test_an_uncertain_call_stays_uncertain_when_its_request_is_withdrawn(run):
    emit = EventFactory("helper")
    function = {"name": "send", "arguments": "{}"}
    asks = {"digest": "x", "why": "unknown", "thought": "", "tool": "", "turn": 1}

    found = close(
        run,
        emit(EventType.STEP_STARTED, step=1, turn=1, kind="thought", request={}),
        decision_event(emit, 1, "a"),
        call_event(emit, 2, "a"),
        emit(EventType.APPROVAL_REQUESTED, step=2, id="a", function=function, **asks),
        emit(EventType.RUN_PAUSED, reason="approval", turn=1),
    )

    assert found == [("send", None, "unknown")]
    assert Approval.objects.get().verdict == "withdrawn"


def test_unstarted_calls_of_a_sub_agent_are_listed_under_its_task(run):
    emit = EventFactory("helper")
    under = {"parent": 2}

    found = close(
        run,
        emit(EventType.STEP_STARTED, step=1, turn=1, kind="thought", request={}),
        decision_event(emit, 1, "ask", "later"),
        call_event(emit, 2, "ask", effect=""),
        emit(EventType.STEP_STARTED, step=3, turn=1, kind="thought", request={}, **under),
        decision_event(emit, 3, "a", "b", **under),
        call_event(emit, 4, "a", **under),
        is_sure=False,
    )

    assert found == [
        ("send", None, "unknown"),
        ("send", 2, "unknown"),
        ("send", None, "unstarted"),
        ("send", 2, "unstarted"),
    ]


def test_a_finished_sub_agent_has_no_unstarted_calls(run):
    emit = EventFactory("helper")
    under = {"parent": 2}

    found = close(
        run,
        emit(EventType.STEP_STARTED, step=1, turn=1, kind="thought", request={}),
        decision_event(emit, 1, "ask"),
        call_event(emit, 2, "ask", effect=""),
        emit(EventType.STEP_STARTED, step=3, turn=1, kind="thought", request={}, **under),
        decision_event(emit, 3, "a", **under),
        emit(EventType.HANDOFF_RETURN, answer="", stopped_reason="budget", **under),
    )

    assert [status for *_, status in found] == ["cancelled"]


@pytest.mark.parametrize(
    ("effect", "status"),
    [("read", "failed"), ("idempotent", "unknown"), ("at_most_once", "unknown")],
)
def test_a_run_that_fails_during_a_call_marks_it_uncertain(run, effect, status):
    emit = EventFactory("helper")

    found = close(
        run,
        emit(EventType.STEP_STARTED, step=1, turn=1, kind="thought", request={}),
        decision_event(emit, 1, "a"),
        call_event(emit, 2, "a", effect=effect),
        reason=StopReason.ERROR,
    )

    assert found == [("send", None, status)]


def test_a_read_only_call_that_ignores_a_stop_is_cancelled(run):
    emit = EventFactory("helper")

    found = close(
        run,
        emit(EventType.STEP_STARTED, step=1, turn=1, kind="thought", request={}),
        decision_event(emit, 1, "a"),
        call_event(emit, 2, "a", effect="read"),
        is_sure=False,
    )

    assert found == [("send", None, "cancelled")]


def ended_view(run, effect, status="done", how="completed"):
    emit = EventFactory("helper")
    event_store.save(
        [
            (run.pk, emit(EventType.STEP_STARTED, step=1, turn=1, kind="thought", request={})),
            (run.pk, decision_event(emit, 1, "a")),
            (run.pk, call_event(emit, 2, "a", effect=effect)),
            (run.pk, emit(EventType.STEP, step=2, kind="tool", status=status)),
        ]
    )
    Run.objects.filter(pk=run.pk).update(status=how, stopped_reason=how)
    return RunView(Run.objects.get(pk=run.pk))


def test_irreversible_effects_are_listed_when_steps_are_hidden(run):
    view = ended_view(run, "at_most_once")

    html = run_section(view)
    assert '<section class="effects" data-when="answer"' in html
    assert "irreversible" in html


def test_a_completed_run_does_not_list_reversible_effects(run):
    assert ended_view(run, "idempotent").effects is None


def test_a_run_that_ended_early_lists_its_effects_in_every_density(run):
    view = ended_view(run, "idempotent", how="stopped")

    html = run_section(view)
    assert '<section class="effects" aria-label="Side effects">' in html


def test_the_trace_lists_what_was_not_started(run):
    emit = EventFactory("helper")
    close(
        run,
        emit(EventType.STEP_STARTED, step=1, turn=1, kind="thought", request={}),
        decision_event(emit, 1, "a", "b"),
        call_event(emit, 2, "a"),
        is_sure=False,
    )

    ledger = RunView(Run.objects.get(pk=run.pk), place="trace").side_effects
    assert [step.outcome_label for step in ledger.rows] == ["may have completed", "not started"]
    assert (ledger.irreversible, len(ledger.not_started)) == (1, 1)


def new_step(run, number, **about):
    now = timezone.now()
    about = {"kind": "tool", "action": "send", "effect": "idempotent", "status": "done"} | about
    about |= {"turn": 1, "first_seq": number, "started_at": now, "ended_at": now}
    return AgentStep(run=run, number=number, agent_name="helper", **about)


def test_a_truncated_effect_list_keeps_irreversible_calls(run):
    steps = [new_step(run, number) for number in range(1, MAX_CALLS + 20)]
    steps += [new_step(run, MAX_CALLS + 20, status="unknown")]
    steps += [new_step(run, MAX_CALLS + 21, effect="at_most_once")]
    AgentStep.objects.bulk_create(steps)
    Run.objects.filter(pk=run.pk).update(status="stopped", ended_at=timezone.now())

    effects = RunView(Run.objects.get(pk=run.pk)).effects

    named = [call.step.number for call in effects.calls]
    assert named == [*range(1, MAX_CALLS - 1), MAX_CALLS + 20, MAX_CALLS + 21]
    assert effects.more == 21


def test_a_very_long_run_lists_unstarted_plan_steps(run):
    plan = {"description": "", "steps": [{"name": "book", "tool": "send", "arguments": {}}]}
    AgentStep.objects.bulk_create([new_step(run, 1, kind="plan", effect="", action_input=plan)])
    Run.objects.filter(pk=run.pk).update(status="stopped", ended_at=timezone.now())

    view = RunView(Run.objects.get(pk=run.pk), size=BARE)

    assert view.plan is None
    assert view.effects.task_names == "book"
