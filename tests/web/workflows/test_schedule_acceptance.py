"""No one can act with another user's permissions by changing their schedule."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import Permission

from agents.models import AuditEntry, Run, Schedule
from agents.web.workflows import acceptance, schedules, versions
from tests.conftest import as_user
from tests.sampling import one_in
from tests.web.workflows import pipeline

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]
MONDAY = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
MORE = pipeline.TEXT + "\n# Another line.\n"


@pytest.fixture
def schedule(workflow, person):
    made = Schedule.objects.create(
        workflow=workflow, user=person, cron="0 9 * * *", next_at=MONDAY
    )
    assert acceptance.update_acceptance(made, person)
    return made


def page(schedule):
    return f"/workflows/schedules/{schedule.pk}/"


def answer(client, schedule, word="accept", **more):
    seal = client.get(page(schedule)).context["offer"].seal
    told = {"seal": seal, "answer": word, **more}
    return client.post(f"{page(schedule)}answer/", told)


def start_due(schedule, day=0):
    Schedule.objects.filter(pk=schedule.pk).update(next_at=MONDAY)
    return schedules.start_due(MONDAY + timedelta(days=day))


def newer(workflow, editor):
    versions.save(MORE, editor, workflow=workflow, base=1)


def test_a_newer_version_waits_for_the_owner(schedule, workflow, editor):
    newer(workflow, editor)

    assert start_due(schedule) == []
    schedule.refresh_from_db()
    assert schedule.trouble == "Waiting for ada to accept version 2. Accepted: 1."
    assert schedule.next_at == MONDAY + timedelta(days=1)


def test_the_owner_sees_the_difference_and_accepts_it(schedule, workflow, editor, person):
    newer(workflow, editor)
    client = as_user(person)

    listed = client.get("/workflows/").text
    shown = client.get(page(schedule)).text
    accepted = answer(client, schedule)

    assert f'href="{page(schedule)}"' in listed
    assert "Another line." in shown.partition('class="difference"')[2].partition("</table>")[0]
    assert accepted.status_code == 302
    [run] = start_due(schedule)
    assert (run.user, run.workflow.number) == (person, 2)
    entry = AuditEntry.objects.get(action="workflow.accepted")
    assert entry.detail["version"] == 2
    assert page(schedule) not in client.get("/workflows/").text


def test_only_the_displayed_version_is_accepted(schedule, workflow, editor, person):
    client = as_user(person)
    newer(workflow, editor)
    seal = client.get(page(schedule)).context["offer"].seal
    versions.save(MORE + "# And one.\n", editor, workflow=workflow, base=2)

    late = client.post(f"{page(schedule)}answer/", {"seal": seal, "answer": "accept"})

    assert late.status_code == 409
    assert "changed while you were reviewing it" in late.text
    assert start_due(schedule) == []


@pytest.mark.parametrize(
    "change",
    one_in(3, [{"parameters": {"names": "x"}}, {"cron": "* * * * *"}, {"user": "stranger"}]),
)
def test_changes_by_others_wait_for_the_owner(schedule, change, administrator, stranger):
    form = {"workflow": schedule.workflow_id, "user": schedule.user_id, "enabled": "on"}
    form |= {"cron": schedule.cron, "overlap": "skip", "parameters": "{}"}
    before = acceptance.terms(schedule, schedule.workflow.newest)
    if "user" in change:
        form["user"] = stranger.pk
    elif "cron" in change:
        form |= change
    else:
        Schedule.objects.filter(pk=schedule.pk).update(**change)
    if "parameters" not in change:
        saved = as_user(administrator).post(
            f"/admin/agents/schedule/{schedule.pk}/change/", form, follow=True
        )
        assert "Waiting for" in saved.text or "was changed" in saved.text

    assert start_due(schedule) == []
    assert not Run.objects.exists()
    schedule.refresh_from_db()
    assert acceptance.terms(schedule, schedule.workflow.newest) != before


def test_a_schedule_for_another_user_starts_after_they_accept_it(
    workflow, administrator, stranger
):
    form = {
        "workflow": workflow.pk,
        "user": stranger.pk,
        "enabled": "on",
        "overlap": "skip",
        "parameters": "{}",
    }
    as_user(administrator).post("/admin/agents/schedule/add/", form | {"cron": "0 9 * * *"})
    made = Schedule.objects.get()

    assert start_due(made) == []
    assert as_user(administrator).get(page(made)).status_code == 404
    answer(as_user(stranger), made)
    assert [run.user for run in start_due(made)] == [stranger]


def test_saving_an_own_schedule_accepts_only_seen_versions(workflow, administrator, editor):
    client = as_user(administrator)
    form = {"workflow": workflow.pk, "user": administrator.pk, "enabled": "on"}
    form |= {"overlap": "skip", "parameters": "{}", "cron": "0 9 * * *"}
    client.post("/admin/agents/schedule/add/", form)
    made = Schedule.objects.get()
    assert made.accepted["version"] == 1

    newer(workflow, editor)
    change = f"/admin/agents/schedule/{made.pk}/change/"
    saved = client.post(change, form | {"cron": "0 8 * * *"}, follow=True)

    assert "This workflow has a new version." in saved.text
    assert start_due(made) == []


@pytest.mark.parametrize("has_newer", [False, True])
def test_only_the_owner_can_enable_what_they_disabled(
    has_newer, workflow, administrator, editor, django_user_model
):
    owner = django_user_model.objects.create_superuser("root2")
    form = {
        "workflow": workflow.pk,
        "user": owner.pk,
        "overlap": "skip",
        "parameters": "{}",
        "cron": "0 9 * * *",
    }
    as_user(owner).post("/admin/agents/schedule/add/", form | {"enabled": "on"})
    made = Schedule.objects.get()
    if has_newer:
        newer(workflow, editor)
    change = f"/admin/agents/schedule/{made.pk}/change/"
    as_user(owner).post(change, form)

    saved = as_user(administrator).post(change, form | {"enabled": "on"}, follow=True)

    assert "root2 turned this schedule off. Only root2 can turn it on." in saved.text
    assert start_due(made) == []
    assert acceptance.awaiting_acceptance(owner) == [made]
    as_user(owner).post(change, form | {"enabled": "on"})
    assert len(start_due(made)) == (0 if has_newer else 1)
    answer(as_user(owner), made)
    assert len(start_due(made)) == (1 if has_newer else 0)


def test_a_declined_schedule_is_disabled_and_others_cannot_enable_it(schedule, person):
    answer(as_user(person), schedule, "decline")
    schedule.refresh_from_db()
    assert not schedule.enabled

    Schedule.objects.update(enabled=True)

    assert start_due(schedule) == []


def test_a_workflow_editor_sees_the_pending_acceptance_but_cannot_accept(
    schedule, workflow, editor
):
    newer(workflow, editor)
    client = as_user(editor)

    assert "Waiting for ada" in client.get(f"/workflows/{workflow.pk}/").text
    assert client.get(page(schedule)).status_code == 404
    assert client.post(f"{page(schedule)}answer/", {"answer": "accept"}).status_code == 404


def test_other_users_do_not_see_schedule_owners(schedule, workflow, stranger):
    shown = as_user(stranger).get(f"/workflows/{workflow.pk}/").text

    assert schedule.cron not in shown


def test_schedule_editors_cannot_borrow_another_users_permissions(schedule, stranger):
    """They change a superuser's schedule, so it waits for review."""
    stranger.is_staff = True
    stranger.user_permissions.set(Permission.objects.filter(content_type__model="schedule"))
    stranger.save()
    form = {"workflow": schedule.workflow_id, "user": schedule.user_id, "enabled": "on"}
    form |= {"cron": "* * * * *", "overlap": "skip", "parameters": "{}"}

    as_user(stranger).post(f"/admin/agents/schedule/{schedule.pk}/change/", form)

    assert start_due(schedule) == []
    schedule.refresh_from_db()
    assert "Waiting for ada to accept it." in schedule.trouble
