"""The owner of a schedule learns at once that its run waits, and so do the alert rules."""

import pytest
from django.contrib.auth.models import Permission
from django.utils import timezone

from agents.insight.alerts import waiting_schedules
from agents.insight.alerts.models import AlertChannel, Delivery, Notification
from agents.models import Approval, Run, Schedule, Workflow
from tests.conftest import as_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(agent, person):
    workflow = Workflow.objects.create(name="Payments")
    schedule = Schedule.objects.create(workflow=workflow, user=person, cron="0 9 * * *")
    run = Run.objects.create(
        agent=agent,
        user=person,
        query="",
        topic=f"schedule.{schedule.pk}",
        status=Run.Status.WAITING,
    )
    Approval.objects.create(
        run=run, step=1, call_id="a", tool="pay", why="unknown", asked_at=timezone.now()
    )
    return run


def test_the_owner_is_notified_and_led_to_the_run(run, person):
    waiting_schedules.announce_waiting(run.pk)

    notification = Notification.objects.get(user=person)
    assert "Payments" in notification.text
    client = as_user(person)
    answer = client.get(f"/notifications/{notification.pk}/")
    assert answer.headers["Location"] == f"/traces/{run.pk}/"


def test_a_rule_sends_it_to_its_channels_and_people_who_can_see_the_run(
    run, webhook, add_rule, stranger, django_user_model
):
    reviewer = django_user_model.objects.create_user("reviewer")
    reviewer.user_permissions.add(Permission.objects.get(codename="review_runs"))
    bell = AlertChannel.objects.create(name="Bell", kind="notification")
    bell.people.set([reviewer, stranger])
    add_rule(webhook, bell, event="schedule.waiting")

    waiting_schedules.announce_waiting(run.pk)

    assert Delivery.objects.get().payload["data"]["schedule"]["run"] == run.pk
    told = set(Notification.objects.values_list("user__username", flat=True))
    assert told == {run.user.username, "reviewer"}


def test_a_run_that_ended_is_not_announced(run):
    Run.objects.update(status=Run.Status.COMPLETED)

    waiting_schedules.announce_waiting(run.pk)

    assert not Notification.objects.exists()
