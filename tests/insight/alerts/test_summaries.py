"""Scheduled summaries: when, once, and what is in them."""

from datetime import UTC, date, datetime, time, timedelta

import pytest
from django.contrib.auth.models import Permission
from django.utils import timezone

from agents.insight.alerts import schedules, summary
from agents.insight.alerts.models import Delivery, SummarySchedule
from agents.insight.problems.models import Problem
from agents.models import ReviewScope
from agents.review.models import Rating
from tests.insight.dashboard.scripted import Script

pytestmark = pytest.mark.django_db
WEDNESDAY = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _zone(settings):
    settings.TIME_ZONE = "Asia/Tokyo"
    timezone.get_default_timezone.cache_clear()
    yield
    timezone.get_default_timezone.cache_clear()


@pytest.fixture
def schedule(webhook):
    row = SummarySchedule.objects.create(name="Weekly", frequency="daily", at=time(8, 0))
    row.channels.add(webhook)
    return row


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"frequency": "daily"}, "2026-11-19 08:00"),
        ({"frequency": "daily", "at": time(22, 0)}, "2026-11-18 22:00"),
        ({"frequency": "weekly", "weekday": 0}, "2026-11-23 08:00"),
        ({"frequency": "monthly", "day": 5}, "2026-12-05 08:00"),
    ],
)
def test_it_is_due_in_the_time_zone_of_the_installation(values, expected):
    found = schedules.next_time(
        SummarySchedule(at=values.pop("at", time(8, 0)), **values), WEDNESDAY
    )

    assert timezone.localtime(found).strftime("%Y-%m-%d %H:%M") == expected


@pytest.mark.parametrize(
    ("frequency", "first", "last"),
    [
        ("daily", date(2026, 11, 17), date(2026, 11, 17)),
        ("weekly", date(2026, 11, 11), date(2026, 11, 17)),
        ("monthly", date(2026, 10, 1), date(2026, 10, 31)),
    ],
)
def test_it_is_about_whole_days_before(frequency, first, last):
    found = summary.period_before(frequency, WEDNESDAY)

    assert (found.first, found.last) == (first, last)


def test_it_is_sent_once_and_a_missed_one_is_made_up_for_once(schedule):
    SummarySchedule.objects.update(next_at=WEDNESDAY - timedelta(days=5))
    again = SummarySchedule.objects.get()

    assert schedules.send_due(WEDNESDAY) == 1
    assert schedules._send(again, WEDNESDAY) == 0
    assert schedules.send_due(WEDNESDAY) == 0
    schedule.refresh_from_db()
    assert schedule.next_at > WEDNESDAY
    assert Delivery.objects.get().payload["data"]["period"]["last"] == "2026-11-12"


def test_a_new_schedule_waits_for_its_time(schedule):
    assert schedules.send_due(WEDNESDAY) == 0
    schedule.refresh_from_db()
    assert schedule.next_at is not None


def make_run(day, **values):
    began = datetime(2026, 11, day, 3, 0, tzinfo=UTC)
    about = {name: values.pop(name) for name in ("reason", "costs") if name in values}
    return Script(began=began, **about).save(**values)


def test_a_scoped_reviewer_reads_figures_of_their_agents(person, agent):
    person.user_permissions.add(Permission.objects.get(codename="review_runs"))
    ReviewScope.objects.create(user=person).agents.add(agent)
    make_run(17, agent=agent)
    make_run(17)
    period = summary.period_before("daily", WEDNESDAY)

    assert summary.load(period, person).figures[0].number == 1
    assert summary.load(period).figures[0].number == 2


def test_figures_are_compared_with_the_period_before(person):
    for _ in range(3):
        make_run(17, costs=[0.5])
    failed = make_run(17, reason="error", costs=[])
    Rating.objects.create(run=failed, user=person, is_good=False)
    make_run(16)
    make_run(18)
    at = datetime(2026, 11, 17, 5, 0, tzinfo=UTC)
    about = {"fingerprint": "a", "algorithm": 1, "kind": "step_limit", "agent_name": "helper"}
    Problem.objects.create(first_seen=at, last_seen=at, count=2, **about)
    found = summary.load(summary.period_before("daily", WEDNESDAY))
    message = summary.build_message(found, "Daily", "https://a.example.com/")

    numbers = message.data["figures"]
    assert (numbers["runs"]["value"], numbers["runs"]["before"]) == (4, 1)
    assert (numbers["cost"]["value"], numbers["error_rate"]["value"]) == (1.5, 0.25)
    assert numbers["completion_rate"]["value"] == 0.75
    assert numbers["p95_seconds"]["before"] == pytest.approx(1.2, rel=0.05)
    assert "Runs: 4 (before: 1)" in message.text
    assert "Satisfaction: 0% (0 of 1) (before: —)" in message.text
    assert "- helper: $1.50" in message.text
    assert "/admin/dashboard/?from=2026-11-17&to=2026-11-17" in message.text
    assert "Reached its max steps without an answer" in message.html
    assert "https://a.example.com/admin/problems/problem/" in message.text
