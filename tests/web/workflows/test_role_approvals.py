"""A step that waits for approval: who decides, and what follows a rejection."""

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group

from agents import runs
from agents.engine.events import Event, EventType
from agents.models import Approval, Run
from agents.runs.projection import Projection
from agents.web.presentation.formats import status_text
from agents.web.workflows import start, versions
from tests.conftest import as_async_user, verify_run
from tests.sampling import one_in

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor", "pipeline_tools"),
]

GATE = """\
name: Gate
steps:
  - {name: agree, ask: "May it be sent?", approves: true, role: Legal}
  - {name: send, tool: report_writer, depends_on: [agree]}
"""


@pytest.fixture
def legal(db):
    return Group.objects.create(name="legal")


@pytest.fixture
async def gate(editor, person, legal):
    """A run started by `person` that waits for the approval of Legal."""
    await sync_to_async(versions.save)(GATE, editor)
    wish = await sync_to_async(start.parse_command)("/workflow Gate", person)
    run = await sync_to_async(start.prepare_run)(wish, person, "chat.1")
    runs.launch(run)
    await runs.wait(run)
    return await Approval.objects.aget(run=run)


@pytest.fixture
def lawyer(stranger, legal):
    stranger.groups.add(legal)
    return stranger


async def page(user, path):
    return (await (await as_async_user(user)).get(path)).text


async def send(user, gate, verdict, words=""):
    form = {"verdict": verdict, f"digest-{gate.pk}": gate.digest, f"reason-{gate.pk}": words}
    return await (await as_async_user(user)).post(f"/approvals/{gate.pk}/", form)


async def over(gate):
    run = await Run.objects.aget(pk=gate.run_id)
    await runs.wait(run)
    return await verify_run(run)


@pytest.mark.parametrize("verdict", ["approve", "reject"])
async def test_the_starter_cannot_approve_for_a_role_of_others(gate, lawyer, person, verdict):
    answer = await send(person, gate, verdict)

    assert answer.status_code == 404
    assert (await Approval.objects.aget()).is_waiting
    assert "May it be sent?" not in await page(person, "/approvals/")
    shown = await page(person, f"/traces/{gate.run_id}/")
    assert "Waiting for a member of the group “Legal”." in shown
    assert "Gate asks for approval" in shown
    assert f"/approvals/{gate.pk}/" not in shown


async def test_a_member_of_the_role_approves_and_the_run_continues(gate, lawyer):
    assert "Gate asks for your approval" in await page(lawyer, "/approvals/")

    await send(lawyer, gate, "approve")

    assert (await over(gate)).status == "completed"
    assert (await Approval.objects.aget()).decided_by_id == lawyer.pk


async def test_the_starter_approves_if_they_have_the_role(gate, legal, lawyer, person):
    await person.groups.aadd(legal)

    shown = await page(person, f"/traces/{gate.run_id}/")
    await send(person, gate, "approve")

    assert f"/approvals/{gate.pk}/" in shown
    assert "Answer it yourself" not in shown
    assert (await over(gate)).status == "completed"


@pytest.mark.parametrize("group", one_in(4, ["", "legal", "leg%", "l_gal"]))
async def test_the_starter_approves_if_the_role_has_no_members(gate, stranger, person, group):
    if group:
        stranger.is_active = group != "legal"
        await stranger.asave()
        named, _is_new = await Group.objects.aget_or_create(name=group)
        await stranger.groups.aadd(named)

    assert f"/approvals/{gate.pk}/" in await page(person, f"/traces/{gate.run_id}/")
    await send(person, gate, "approve")

    assert (await over(gate)).status == "completed"


async def test_the_starter_can_stop_the_run(gate, lawyer, person):
    await runs.stop(await Run.objects.aget())

    assert (await over(gate)).status == "stopped"
    assert (await Approval.objects.aget()).verdict == "withdrawn"


@pytest.mark.parametrize("words", ["", "Not before May."])
async def test_a_rejection_is_not_a_failure(gate, lawyer, person, words):
    await send(lawyer, gate, "reject", words)

    run = await over(gate)
    task = await run.steps.aget(kind="task", action="agree")
    shown = await page(person, f"/traces/{run.pk}/")
    assert (run.status, task.status) == ("stopped", "rejected")
    assert "|failed|" not in run.step_types
    assert "eve rejected “agree”, so the workflow ended here." in shown
    assert ("Comment: “Not before May.”." in shown) == bool(words)
    assert "1 rejected" in shown
    assert 'data-status="failed"' not in shown


async def test_an_approved_step_that_fails_is_a_failure(gate, lawyer):
    await send(lawyer, gate, "approve")
    run = await over(gate)
    task = await run.steps.aget(kind="task", action="agree")
    told = {"step": task.number, "kind": "task", "status": "failed", "observation": "Late."}

    rows = Projection()
    event = Event(type=EventType.STEP, data=told, agent="Gate", time=task.ended_at, seq=99)
    await sync_to_async(rows.take)(run.pk, event)
    await sync_to_async(rows.write)()

    await task.arefresh_from_db()
    assert task.status == "failed"


def test_only_a_rejection_is_called_rejected():
    late = "“agree”: Timed out after 3 s."

    ended = status_text.ending_sentence(Run(stopped_reason="cancelled", detail=late))

    assert ended == f"Stopped. {late}"
