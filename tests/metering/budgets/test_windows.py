"""Calendar windows in the installation's time zone."""

from datetime import UTC, datetime

import pytest
from django.utils import timezone

from agents.metering.budgets import holds, windows
from agents.metering.budgets.measures import HELD, MEASURES, Estimate, Used, format_amount
from agents.metering.budgets.payers import Payer
from agents.models import BudgetCounter, BudgetHold, Quota


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "window", "now", "start", "end"),
    [
        ("Asia/Tokyo", "day", "2026-03-01T15:00", "2026-03-01T15:00", "2026-03-02T15:00"),
        ("Asia/Tokyo", "day", "2026-03-01T14:59", "2026-02-28T15:00", "2026-03-01T15:00"),
        ("Asia/Tokyo", "month", "2026-02-28T15:00", "2026-02-28T15:00", "2026-03-31T15:00"),
        # 23 and 25 hours long
        ("Europe/Berlin", "day", "2026-03-29T12:00", "2026-03-28T23:00", "2026-03-29T22:00"),
        ("Europe/Berlin", "day", "2026-10-25T12:00", "2026-10-24T22:00", "2026-10-25T23:00"),
        ("Europe/Berlin", "month", "2026-03-10T00:00", "2026-02-28T23:00", "2026-03-31T22:00"),
        (
            "Asia/Kolkata",
            "minute",
            "2026-01-01T00:00:59",
            "2026-01-01T00:00",
            "2026-01-01T00:01",
        ),
        (
            "America/New_York",
            "month",
            "2026-12-31T12:00",
            "2026-12-01T05:00",
            "2027-01-01T05:00",
        ),
    ],
)
def test_windows_follow_the_calendar(settings, zone, window, now, start, end):
    settings.TIME_ZONE = zone
    timezone.get_default_timezone.cache_clear()
    try:
        assert windows.window_start(window, at(now)) == at(start)
        assert windows.window_end(window, at(now)) == at(end)
    finally:
        timezone.get_default_timezone.cache_clear()


@pytest.mark.django_db(transaction=True)
def test_a_call_is_counted_in_the_window_in_which_it_began(person, monkeypatch):
    Quota.objects.create(user=person, measure="tokens", window="day", limit=100)
    payer, before = Payer(user=person.pk), at("2026-05-05T23:59:59")
    monkeypatch.setattr(timezone, "now", lambda: before)
    hold = holds.reserve(payer, Estimate(tokens=60))

    after = at("2026-05-06T00:00:30")
    monkeypatch.setattr(timezone, "now", lambda: after)
    assert holds.reserve(payer, Estimate(tokens=90))  # a new day begins with nothing
    holds.settle(hold, Used(tokens=70))

    first, second = BudgetCounter.objects.order_by("start")
    assert (first.tokens, second.tokens) == (70, 0)


def test_every_measure_of_a_limit_is_counted_and_every_held_one_has_its_columns():
    counted = {field.name for field in BudgetCounter._meta.fields}
    held = {field.name for field in BudgetHold._meta.fields}

    assert list(MEASURES) == Quota.Measure.values
    assert counted >= MEASURES.keys()
    assert held >= {column for key in HELD for column in (key, MEASURES[key].used_column)}
    assert {*Estimate().held()} == {*Used().amounts()} == {*HELD}
    with pytest.raises(KeyError):
        format_amount("pages", 3)
