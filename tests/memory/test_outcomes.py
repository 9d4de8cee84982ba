"""Later outcomes decide whether an experience stays."""

import pytest

from agents.memory import outcomes
from agents.models import Experience
from agents.review.models import Rating

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def use(experience, run):
    outcomes.record_use(run.pk, [experience.pk])
    outcomes.record_use(run.pk, [experience.pk])  # a resumed run


def test_ratings_of_runs_with_it_are_counted(experience, answered, rate):
    row = experience()
    for at, is_good in enumerate((True, True, False)):
        run = answered(topic=f"chat.{at}")
        use(row, run)
        rate(run, is_good=is_good)

    outcomes.count()
    row.refresh_from_db()
    assert (row.helpful, row.harmful, row.status) == (2, 1, "active")


def test_one_that_does_harm_twice_is_dropped(experience, answered, rate):
    row = experience()
    for at in range(2):
        run = answered(topic=f"chat.{at}")
        use(row, run)
        rate(run)

    outcomes.count()
    row.refresh_from_db()
    assert (row.harmful, row.status, row.off_reason) == (2, "off", "harmful")


def test_one_person_does_not_take_away_what_others_use(experience, answered, rate, stranger):
    row = experience(scope="agent")
    for at in range(3):
        run = answered(topic=f"chat.{at}")
        use(row, run)
        rate(run)
    outcomes.count()
    row.refresh_from_db()
    assert (row.harmful, row.status) == (3, "active")

    run = answered(topic="chat.9", user=stranger)
    use(row, run)
    rate(run)
    outcomes.count()
    row.refresh_from_db()
    assert row.status == "off"


def test_an_answer_that_was_regenerated_counts_as_harm(experience, answered):
    row, run = experience(), answered()
    use(row, run)
    answered()

    outcomes.count()
    assert Experience.objects.get().harmful == 1


def test_too_slow_and_too_long_are_not_its_fault(experience, answered, rate):
    row, run = experience(), answered()
    use(row, run)
    rate(run, reason="slow")

    outcomes.count()
    assert Experience.objects.get().harmful == 0


def test_a_rating_that_was_taken_back_no_longer_counts(experience, answered, rate):
    row, run = experience(), answered()
    use(row, run)
    rate(run, is_good=True)
    outcomes.count()
    Rating.objects.all().delete()

    outcomes.count()
    assert Experience.objects.get().helpful == 0
