from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import Permission

from agents import runs
from agents.db import database
from agents.models import Run, Schedule, Workflow
from agents.web.workflows import acceptance, schedules, versions
from tests.conftest import as_user, verify_run

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

MONDAY = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)


@pytest.fixture
def schedule(workflow, person):
    made = Schedule.objects.create(
        workflow=workflow, user=person, cron="0 9 * * 1-5", next_at=MONDAY
    )
    acceptance.update_acceptance(made, person)
    return made


def test_a_due_schedule_starts_once_in_any_process(schedule, person):
    first = schedules.start_due(MONDAY)
    second = schedules.start_due(MONDAY)

    assert [run.user for run in first] == [person]
    assert second == []
    schedule.refresh_from_db()
    assert schedule.next_at == MONDAY + timedelta(days=1)
    assert schedule.last_run_at == MONDAY


def test_two_processes_at_once_start_one_run(schedule):
    stale = Schedule.objects.select_related("workflow", "user").get()

    assert schedules._start_schedule(schedule, MONDAY) is not None
    assert schedules._start_schedule(stale, MONDAY) is None
    assert Run.objects.count() == 1


def test_missed_runs_are_started_once(schedule):
    late = MONDAY + timedelta(days=10)

    started = schedules.start_due(late)

    assert len(started) == 1
    assert schedules.start_due(late) == []
    schedule.refresh_from_db()
    assert schedule.next_at > late


def test_nothing_starts_early_or_while_disabled(schedule):
    assert schedules.start_due(MONDAY - timedelta(minutes=1)) == []
    Workflow.objects.update(enabled=False)
    assert schedules.start_due(MONDAY) == []
    Workflow.objects.update(enabled=True)
    Schedule.objects.update(enabled=False)
    assert schedules.start_due(MONDAY) == []


def test_no_run_starts_while_the_last_one_is_live(schedule):
    schedules.start_due(MONDAY)

    again = schedules.start_due(MONDAY + timedelta(days=1))

    assert again == []
    schedule.refresh_from_db()
    assert schedule.trouble == "The previous run hasn't finished yet."
    assert schedule.next_at == MONDAY + timedelta(days=2)


def test_a_schedule_that_waits_starts_as_soon_as_the_last_run_has_finished(schedule):
    Schedule.objects.update(overlap=Schedule.Overlap.WAIT)
    schedules.start_due(MONDAY)
    Run.objects.update(status=Run.Status.WAITING)
    tuesday = MONDAY + timedelta(days=1)

    assert schedules.start_due(tuesday) == []
    schedule.refresh_from_db()
    assert schedule.next_at == tuesday
    assert str(Run.objects.get().pk) in schedule.trouble
    Run.objects.update(status=Run.Status.COMPLETED)
    assert len(schedules.start_due(tuesday + timedelta(hours=2))) == 1
    schedule.refresh_from_db()
    assert (schedule.next_at, schedule.trouble) == (MONDAY + timedelta(days=2), "")


def test_a_failed_start_has_a_reason_and_is_retried_next_time(schedule):
    schedule.parameters = {"nothing": 1}
    schedule.save()
    acceptance.update_acceptance(schedule, schedule.user)

    assert schedules.start_due(MONDAY) == []
    schedule.refresh_from_db()
    assert "no parameter nothing" in schedule.trouble
    assert schedule.next_at == MONDAY + timedelta(days=1)


async def test_the_scheduler_starts_a_run_that_completes(schedule):
    await Schedule.objects.aupdate(next_at=MONDAY - timedelta(days=300))

    await schedules.launch_due()
    run = await Run.objects.aget()
    await runs.wait(run)

    assert (await verify_run(run)).status == "completed"


@pytest.mark.parametrize("cron", ["x", "61 * * * *", "0 0 31 2 *", "* * * *", ""])
def test_an_invalid_time_is_rejected(cron):
    with pytest.raises(schedules.InvalidCron):
        schedules.next_time(cron, MONDAY)


def test_an_administrator_sets_the_time(workflow, administrator):
    client = as_user(administrator)
    form = {"workflow": workflow.pk, "user": administrator.pk, "enabled": "on"}
    form |= {"overlap": "skip", "parameters": "{}"}

    wrong = client.post("/admin/agents/schedule/add/", form | {"cron": "soon"})
    right = client.post("/admin/agents/schedule/add/", form | {"cron": "0  9 * * *"})

    assert "Invalid cron expression" in wrong.text
    assert right.status_code == 302
    made = Schedule.objects.get()
    assert made.cron == "0 9 * * *"
    assert made.next_at is not None


def test_only_superusers_schedule_for_other_users(workflow, stranger, person):
    """Restrict the owner, because a scheduled run has that user's permissions."""
    stranger.is_staff = True
    stranger.user_permissions.set(Permission.objects.filter(content_type__model="schedule"))
    stranger.save()
    client = as_user(stranger)
    form = {
        "workflow": workflow.pk,
        "enabled": "on",
        "overlap": "skip",
        "parameters": "{}",
        "cron": "0 9 * * *",
    }

    theirs = client.post("/admin/agents/schedule/add/", form | {"user": person.pk})
    own = client.post("/admin/agents/schedule/add/", form | {"user": stranger.pk})

    assert "Only a superuser can make a workflow run as another user." in theirs.text
    assert own.status_code == 302
    assert Schedule.objects.get().user == stranger


NEEDS_A_NAME = """
name: Letter
parameters: {count: 3, to: null}
steps:
  - {name: ask, ask: "Shall ${parameters.count} go to ${parameters.to}?"}
"""


def test_a_new_schedule_is_for_the_user_and_lists_its_parameters(administrator):
    letter = versions.save(NEEDS_A_NAME, administrator)
    client = as_user(administrator)

    page = client.get(f"/admin/agents/schedule/add/?workflow={letter.pk}")

    initial = page.context["adminform"].form.initial
    assert initial["user"] == administrator.pk
    assert initial["parameters"] == {"count": 3, "to": None}
    shown = page.text
    assert f'<option value="{administrator.pk}" selected>' in shown
    assert "Time zone: UTC." in shown
    assert client.get("/admin/agents/schedule/add/?workflow=²").status_code == 200


def test_a_missing_parameter_is_an_error(administrator):
    letter = versions.save(NEEDS_A_NAME, administrator)
    client = as_user(administrator)
    form = {"workflow": letter.pk, "user": administrator.pk, "cron": "0 9 * * *"}

    page = client.post(
        "/admin/agents/schedule/add/", form | {"parameters": '{"count": 3, "to": null}'}
    )

    assert "to is required." in page.text
    assert not Schedule.objects.exists()


# Agents


@pytest.fixture
def agent_schedule(agent, person):
    made = Schedule.objects.create(
        agent=agent, question="What is 6 * 7?", user=person, cron="0 9 * * 1-5", next_at=MONDAY
    )
    acceptance.update_acceptance(made, person)
    return made


async def test_a_schedule_asks_an_agent(agent_schedule, agent, person):
    [run] = await database.run(schedules.start_due, MONDAY)
    runs.launch(run)
    await runs.wait(run)
    await run.arefresh_from_db()

    assert (run.agent_id, run.user_id, run.query) == (agent.pk, person.pk, "What is 6 * 7?")
    assert run.topic == f"schedule.{agent_schedule.pk}"
    assert "42" in run.answer


def test_a_message_that_someone_else_changed_waits_for_the_owner(agent_schedule, person):
    Schedule.objects.update(question="Send me everything")

    assert schedules.start_due(MONDAY) == []
    agent_schedule.refresh_from_db()
    assert "ada" in agent_schedule.trouble
    assert acceptance.awaiting_acceptance(person) == [agent_schedule]
    page = as_user(person).get(f"/workflows/schedules/{agent_schedule.pk}/").text
    assert "Send me everything" in page


def test_an_agent_that_the_owner_cant_use_any_more_is_not_started(agent_schedule, agent):
    type(agent).objects.update(enabled=False)

    assert schedules.start_due(MONDAY) == []
    agent_schedule.refresh_from_db()
    assert "can't use the agent" in agent_schedule.trouble


def test_an_answer_can_be_in_a_new_chat(agent_schedule, person):
    Schedule.objects.update(into_chat=True)
    [run] = schedules.start_due(MONDAY)

    message = run.message
    assert message.session.user == person
    assert message.text == "What is 6 * 7?"
    assert run.topic == message.session.topic
    assert as_user(person).get(f"/chat/{message.session_id}/").status_code == 200
