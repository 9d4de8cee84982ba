"""A model's limits over all processes: slots, order and expiry in the database."""

from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from agents.engine.resilience import Limits
from agents.metering.model_limits import queue_lengths, slots
from agents.models import ModelGate, ModelSlot

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

ONE = Limits(concurrency=1)


def join(*keys, limits=ONE):
    return [slots.join(key, "fast", limits) for key in keys]


def test_calls_run_in_order_of_arrival_up_to_the_limit():
    lines = join(*"abcd", limits=Limits(concurrency=2))

    assert [line.admitted for line in lines] == [{"a"}, {"b"}, set(), set()]
    assert [line.places for line in lines[2:]] == [{"c": 1}, {"d": 2}]
    assert queue_lengths()["fast"] == slots.QueueLength(running=2, waiting=2)


def test_a_free_slot_goes_to_the_first_in_line_only():
    limits = Limits(concurrency=1)
    join(*"abc")
    slots.leave("a", "fast", limits)

    assert slots.admit("fast", limits, {"c"}).places == {"c": 2}
    assert slots.admit("fast", limits, {"b", "c"}).admitted == {"b"}
    assert slots.admit("fast", limits, {"c"}).places == {"c": 1}


def test_a_cancelled_call_frees_its_place_in_line():
    join(*"abc")
    slots.leave("b", "fast", ONE)

    assert slots.admit("fast", ONE, {"c"}).places == {"c": 1}


def test_the_slots_of_a_crashed_process_expire():
    join("a", "b")
    ModelSlot.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    assert join("c")[0].admitted == {"c"}
    assert [slot.key for slot in ModelSlot.objects.all()] == ["c"]


def test_renewed_slots_do_not_expire():
    join("a")
    ModelSlot.objects.update(expires_at=timezone.now() + timedelta(seconds=1))
    before = ModelSlot.objects.get().expires_at

    slots.renew(["a"])

    assert ModelSlot.objects.get().expires_at > before + timedelta(seconds=10)


def test_requests_per_minute_are_counted_together_and_drain():
    limits = Limits(requests=2)
    assert [bool(line.admitted) for line in join(*"abc", limits=limits)] == [True, True, False]
    for key in "ab":
        slots.leave(key, "fast", limits)

    waiting = slots.admit("fast", limits, {"c"})
    assert (waiting.admitted, waiting.limit) == (set(), "requests")
    assert 25 < waiting.seconds <= 30
    ModelGate.objects.update(counted_at=F("counted_at") - timedelta(seconds=31))
    assert slots.admit("fast", limits, {"c"}).admitted == {"c"}


def test_tokens_are_counted_when_the_call_ends():
    limits = Limits(tokens=100)
    join("a", limits=limits)
    slots.leave("a", "fast", limits, tokens=130)

    line = join("b", limits=limits)[0]
    assert (line.admitted, line.limit) == (set(), "tokens")
    ModelGate.objects.update(counted_at=F("counted_at") - timedelta(seconds=20))
    assert slots.admit("fast", limits, {"b"}).admitted == {"b"}


def test_a_place_that_expired_is_at_the_end_when_it_joins_again():
    join(*"abc")
    ModelSlot.objects.filter(key="b").update(expires_at=timezone.now() - timedelta(seconds=1))

    assert slots.rejoin("b", "fast", ONE).places == {"b": 2}
