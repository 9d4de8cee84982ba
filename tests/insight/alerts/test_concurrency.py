"""Alerts and summaries are sent once, also by several processes."""

from datetime import timedelta

import pytest
from django.utils import timezone

from agents.insight.alerts import rules, schedules
from agents.insight.alerts.models import Delivery, SummarySchedule
from tests.insight.problems.test_concurrency import at_once

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


def test_a_problem_is_announced_by_one_process(happen, webhook, add_rule):
    add_rule(webhook)
    happen()
    at_once(*[rules.announce] * 4)

    assert Delivery.objects.count() == 1


def test_a_summary_is_sent_by_one_process(webhook):
    due = timezone.now() - timedelta(minutes=1)
    schedule = SummarySchedule.objects.create(name="Daily", frequency="daily", next_at=due)
    schedule.channels.add(webhook)
    at_once(*[schedules.send_due] * 4)

    assert Delivery.objects.count() == 1
