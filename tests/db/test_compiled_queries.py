"""A compiled query returns the same as a new one."""

import asyncio

import pytest
from channels.db import database_sync_to_async
from django.db.models.functions import Length

from agents.db.compiled_queries import compiled_query
from agents.models import Run

pytestmark = pytest.mark.both_databases


@compiled_query
def runs_on(topic, after):
    runs = Run.objects.live().filter(topic__startswith="chat", topic=topic, pk__gt=after)
    return runs.select_related("user").order_by("pk")


@compiled_query
def questions(topic):
    return Run.objects.filter(topic=topic).values_list("query", flat=True)[:1]


@compiled_query
def lengths(topic):
    runs = Run.objects.filter(topic=topic).defer("history")
    return runs.annotate(length=Length("query"))


@compiled_query
def pairs(topic):
    return Run.objects.filter(topic=topic).values_list("history", "started_at")


@compiled_query
def queries_of(*pks):
    return Run.objects.filter(pk__in=pks).order_by("pk").values_list("query", flat=True)


@pytest.fixture
def asked(person):
    return Run.objects.create(topic="chat.1", query="6 * 7", user=person, history=[{"a": 1}])


def test_placeholders_are_filled_for_each_call(asked):
    other = Run.objects.create(topic="chat.2", query="1 + 1")

    assert runs_on("chat.1", 0) == [asked]
    assert runs_on("chat.2", 0) == [other]
    assert runs_on("chat.2", other.pk) == []
    assert (questions("chat.1"), questions("chat.3")) == (["6 * 7"], [])
    assert runs_on("chat.1", after=0) == runs_on(after=0, topic="chat.1") == [asked]


def test_a_missing_argument_is_an_error(asked):
    with pytest.raises(ValueError, match="zip"):
        runs_on("chat.1")
    with pytest.raises(KeyError, match="after"):
        runs_on(topic="chat.1")


def test_rows_are_complete(asked, django_assert_num_queries):
    with django_assert_num_queries(1):
        [run] = runs_on("chat.1", 0)

        assert (run.history, run.started_at) == ([{"a": 1}], asked.started_at)
        assert run.user.username == "ada"


def test_rows_equal_those_of_the_orm(asked):
    Run.objects.create(topic="chat.2", query="1 + 1")
    for theirs in Run.objects.order_by("pk"):
        [ours] = runs_on(theirs.topic, 0)
        assert {**vars(ours), "_state": None} == {**vars(theirs), "_state": None}
        assert (ours.user, ours._state.db) == (theirs.user, theirs._state.db)
        assert ours._state.adding is theirs._state.adding is False


def test_deferred_columns_load_later_and_annotations_are_there(asked):
    [run] = lengths("chat.1")

    assert run.get_deferred_fields() == {"history"}
    assert (run.length, run.history) == (5, [{"a": 1}])


def test_values_are_converted_to_python(asked):
    assert pairs("chat.1") == [([{"a": 1}], asked.started_at)]


def test_too_few_arguments_are_an_error(asked):
    with pytest.raises(ValueError, match="shorter"):
        runs_on("chat.1")


@pytest.mark.django_db(transaction=True)
async def test_every_thread_has_its_own_connection(person):
    run = await Run.objects.acreate(topic="chat.1", query="6 * 7", user=person)
    elsewhere = database_sync_to_async(runs_on, thread_sensitive=False)

    found = await asyncio.gather(*(elsewhere("chat.1", 0) for _ in range(4)))

    assert found == [[run]] * 4


def test_a_query_takes_any_number_of_values(asked):
    other = Run.objects.create(topic="chat.2", query="1 + 1")

    assert queries_of(asked.pk, other.pk) == ["6 * 7", "1 + 1"]
    assert queries_of(other.pk) == ["1 + 1"]
    assert queries_of() == []
