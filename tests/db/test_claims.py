"""One process at a time works on an item."""

from datetime import timedelta

import pytest
from django.utils import timezone

from agents.db import claims
from agents.models import EmbeddingIndex, PeriodicJob

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


@pytest.fixture
def item():
    return EmbeddingIndex.objects.create(model="demo", dimension=8)


def read_again(item):
    return EmbeddingIndex.objects.get(pk=item.pk)


def test_only_one_of_two_processes_that_read_the_same_item_takes_it(item):
    other = read_again(item)

    assert claims.take(item, problem="taken")
    assert not claims.take(other)
    assert not claims.take(read_again(item))
    assert item.problem == read_again(item).problem == "taken"
    assert not EmbeddingIndex.objects.filter(claims.is_due(timezone.now())).exists()


def test_an_item_whose_process_has_died_is_taken_over_and_the_late_one_writes_nothing(item):
    claims.take(item)
    EmbeddingIndex.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    next_process = read_again(item)

    assert claims.take(next_process)
    assert (item.was_abandoned, next_process.was_abandoned) == (False, True)
    with pytest.raises(claims.ClaimLost):
        claims.renew(item, problem="late")
    assert not claims.release(item, problem="late")
    assert claims.held(next_process).get().problem == ""


def test_a_released_item_pauses_before_the_next_attempt_and_was_not_abandoned(item):
    now = timezone.now()
    claims.take(item)

    assert claims.release(item, until=now + timedelta(minutes=1), problem="busy")
    due = [claims.is_due(now + timedelta(minutes=minutes)) for minutes in (0, 2)]
    assert [EmbeddingIndex.objects.filter(each).count() for each in due] == [0, 1]
    released = read_again(item)
    assert claims.take(released)
    assert not released.was_abandoned


def test_an_item_that_may_not_be_taken_any_more_stays(item):
    EmbeddingIndex.objects.update(status="retired")

    assert not claims.take(item, among=EmbeddingIndex.objects.filter(status="building"))


def test_a_renewed_lease_lasts_longer(item):
    claims.take(item)
    until = item.lease_until
    claims.renew(item, done=3)

    assert read_again(item).lease_until > until
    assert read_again(item).done == 3


def test_whoever_moves_a_time_on_first_does_the_work():
    now = timezone.now()
    first = PeriodicJob.objects.create(name="a", started_at=now)
    second = PeriodicJob.objects.get()
    later = now + timedelta(minutes=1)

    assert claims.compare_and_set(first, "started_at", later, problem="")
    assert not claims.compare_and_set(second, "started_at", later)


def test_several_items_are_taken_and_released_with_one_lease(item):
    other = EmbeddingIndex.objects.create(model="other", dimension=8)
    claims.take(other)

    taken = list(claims.take_all(EmbeddingIndex.objects.all(), status="retired"))
    assert taken == [item]
    claims.release_all(taken, problem="done")
    assert (read_again(item).lease, read_again(item).problem) == ("", "done")
    assert read_again(other).lease
