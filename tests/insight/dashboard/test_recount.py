"""The dashboard's numbers equal a recount from events."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.engine.events import Event, EventType
from agents.insight.dashboard import choices
from agents.metering.figures import catch_up, rollups
from agents.metering.figures.models import (
    MEASURES,
    UNKNOWN_TOOL,
    DailyFigures,
    DeletedFigures,
    RunSummary,
    SummarizedDay,
)
from agents.metering.figures.query import By
from agents.metering.figures.selection import Selection, Viewer
from agents.models import HiddenTopic, Run
from agents.review.models import Rating, Review
from agents.runs import event_store
from chat.sessions import batched_delete
from tests.insight.dashboard.scripted import Script, exact_percentile, recount

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
# What the corpus has none of.
UNSCRIPTED = {
    "cache_write_tokens",
    "saved_cost",
    "cached",
    "retries",
    "regenerated",
    "check_cost",
    "retry_cost",
    "title_cost",
}
THOROUGH = pytest.mark.thorough


def ago(**span):
    return datetime.now(UTC) - timedelta(**span)


def same(totals, found):
    """Return whether all measures are equal; what the recount lacks is zero."""
    skipped = {"active_count", "active_ms", "first_count", "first_ms", "retries"}
    expected = {name: found[name] for name in MEASURES if name not in skipped}
    assert {name: totals[name] for name in expected} == expected
    return True


@pytest.fixture
def corpus(person, stranger):
    """A mixed corpus: every outcome, plans, late and rejected calls, unknown prices."""
    scripts = [
        Script(user=person, calls=[("search", "done"), ("database", "late")]),
        Script(user=person, reason="error", is_late=True, began=ago(days=1)),
        Script(user=stranger, reason="cancelled", costs=[None, 0.1], began=ago(days=2)),
        Script(user=stranger, reason="budget_exceeded", agent="planner", plans=3),
        Script(agent="planner", version=2, plans=1, reason="blocked", hits=["block", "warn"]),
        Script(user=person, reason="max_steps_reached", calls=[("search", "rejected")]),
        Script(user=person, version=None, cached_tokens=64, hits=["observe"], words=3),
        Script(user=person, model="demo/two", falls_back=True, calls=[("database", "failed")]),
        Script(user=person, reason="tool_failure_degraded", began=ago(days=5)),
        Script(user=stranger, reason="interrupted", began=ago(days=5)),
        Script(user=person, calls=[("database", "rescued")]),
    ]
    runs = [script.save() for script in scripts]
    Rating.objects.create(run=runs[0], user=person, is_good=True)
    Rating.objects.create(run=runs[0], user=stranger, is_good=False)
    Rating.objects.create(run=runs[2], user=stranger, is_good=False)
    Review.objects.create(run=runs[6], correction="42")
    return runs


@pytest.mark.parametrize("is_rolled", [False, True])
def test_all_measures_equal_a_recount(corpus, count, is_rolled):
    found, times = recount(corpus)
    totals = count(is_rolled=is_rolled)

    assert same(totals, found)
    assert {name for name in MEASURES if not totals[name]} == UNSCRIPTED
    assert DailyFigures.objects.exists() == is_rolled
    for share in (0.5, 0.95):
        exact = exact_percentile(times["active"], share)
        assert totals.percentile("active", share) == pytest.approx(exact, rel=0.05)
        first = exact_percentile(times["first"], share)
        assert totals.percentile("first", share) == pytest.approx(first, rel=0.05)


@pytest.mark.parametrize(
    ("by", "is_rolled"),
    [
        *((By.VERSION, False), (By.PERSON, True), (By.DAY, True)),
        *(
            pytest.param(by, is_rolled, marks=THOROUGH)
            for by in (By.AGENT, By.MODEL)
            for is_rolled in (False, True)
        ),
        pytest.param(By.VERSION, True, marks=THOROUGH),
        pytest.param(By.PERSON, False, marks=THOROUGH),
        pytest.param(By.DAY, False, marks=THOROUGH),
    ],
)
def test_each_part_equals_a_recount_of_its_runs(corpus, count, by, is_rolled):
    keys = {
        By.AGENT: lambda run: (run.agent_name,),
        By.VERSION: lambda run: (run.agent_name, run.agent_version or 0),
        By.MODEL: lambda run: (run.model,),
        By.PERSON: lambda run: (run.user_id,),
        By.DAY: lambda run: (timezone.localtime(run.started_at).date(),),
    }
    parts = count(by, is_rolled=is_rolled)
    assert set(parts) == {keys[by](run) for run in corpus}
    for key, totals in parts.items():
        same(totals, recount([run for run in corpus if keys[by](run) == key])[0])


@pytest.mark.parametrize("is_rolled", [False, True])
def test_tools_have_their_own_calls_and_the_runs_that_used_them(corpus, count, is_rolled):
    parts = count(By.TOOL, is_rolled=is_rolled)
    database, search = parts["database",], parts["search",]

    assert (database["runs"], database["tool_calls"], database["tool_errors"]) == (3, 3, 3)
    assert database["tool_timeouts"] == 1
    assert (search["runs"], search["tool_calls"], search["limited"]) == (2, 1, 1)


@pytest.mark.parametrize(
    "chosen",
    [
        {"agent": "planner", "version": "2"},
        {"tool": "database"},
        pytest.param({"agent": "planner"}, marks=THOROUGH),
        pytest.param({"model": "demo/two"}, marks=THOROUGH),
        pytest.param({"version": "draft"}, marks=THOROUGH),
    ],
)
def test_filters_combine_as_they_do_in_the_recount(corpus, count, chosen, person):
    def is_chosen(run):
        tools = {
            event.data["function"]["name"] for event in run.events.filter(type="tool_call")
        }
        return (
            chosen.get("agent", run.agent_name) == run.agent_name
            and chosen.get("model", run.model) == run.model
            and chosen.get("version", str(run.agent_version or "draft"))
            == str(run.agent_version or "draft")
            and (chosen.get("tool") in tools or "tool" not in chosen)
        )

    for person_too in ({}, {"person": person.pk}):
        wanted = [r for r in corpus if is_chosen(r) and (not person_too or r.user == person)]
        found, _times = recount(wanted)
        totals = count(**chosen, **person_too)
        if "tool" in chosen:  # of the tool alone
            for name in ("tool_calls", "tool_errors", "tool_timeouts"):
                found[name] = totals[name]
        assert same(totals, found)


def test_a_late_rating_and_a_taken_back_one_are_counted(corpus, count, person, stranger):
    before = count()
    rating = Rating.objects.create(run=corpus[8], user=person, is_good=True)
    assert count()["ratings_up"] == before["ratings_up"] + 1
    rating.is_good = False
    rating.save()
    assert count()["ratings_down"] == before["ratings_down"] + 1
    rating.delete()
    assert same(count(), recount(corpus)[0])


def test_a_resumed_run_counts_once_when_it_has_ended_again(corpus, count):
    assert count()["interrupted"] == 1
    Run.objects.filter(pk=corpus[9].pk).update(status="running")
    assert count()["runs"] == len(corpus) - 1

    ended = corpus[9].ended_at + timedelta(seconds=30)
    Run.objects.filter(pk=corpus[9].pk).update(status="completed", ended_at=ended)
    totals = count()
    assert (totals["interrupted"], totals["runs"]) == (0, len(corpus))


def test_what_was_deleted_still_counts_but_not_under_its_person(corpus, count, person):
    expected, _times = recount(corpus)
    people = count(By.PERSON)
    mine = people[person.pk,]["runs"]
    while batched_delete.delete_run_batch(Run.objects.filter(pk=corpus[0].pk)):
        pass

    for is_rolled in (False, True):
        assert same(count(is_rolled=is_rolled), expected)
        after = count(By.PERSON, is_rolled=is_rolled)
        assert after[person.pk,]["runs"] == mine - 1
        assert count(By.TOOL, is_rolled=is_rolled)["database",]["tool_timeouts"] == 1
    assert not RunSummary.objects.filter(run=corpus[0].pk).exists()


def test_erasing_a_person_leaves_anonymous_sums(corpus, count, person):
    expected, _times = recount(corpus)
    count()
    pk = person.pk
    person.delete()

    assert same(count(), expected)
    assert (pk,) not in count(By.PERSON)
    assert not DailyFigures.objects.filter(user=pk).exists()


def test_runs_that_were_deleted_before_they_were_summarized_count(corpus, count):
    expected, _times = recount(corpus)
    corpus[3].delete()
    assert same(count(), expected)


def test_imported_runs_experiments_and_temporary_chats_dont_count(corpus, count, person):
    Script(user=person).save(topic="trial.experiment.7")
    imported = Script(user=person).save()
    Run.objects.filter(pk=imported.pk).update(route=Run.IMPORTED)
    HiddenTopic.objects.create(topic="chat.temporary", user=person)
    temporary = Script(user=person).save(topic="chat.temporary")
    assert count()["runs"] == len(corpus)

    HiddenTopic.objects.all().delete()  # the chat is kept
    assert count()["runs"] == len(corpus) + 1
    HiddenTopic.objects.create(topic="chat.temporary", user=person)
    catch_up.mark_stale([temporary.pk])
    count()
    temporary.delete()
    assert count()["runs"] == len(corpus)


def test_catching_up_twice_changes_nothing(corpus, count):
    first = count()
    for run in corpus:
        catch_up.mark_stale([run.pk])
    rollups.roll_up_days()
    assert count() == first
    assert catch_up.catch_up() == 0


def test_late_events_of_an_ended_run_are_counted(corpus, count):
    before = count()
    run = corpus[0]
    last = run.events.order_by("seq").last().value
    data = {"step": 1, "prompt_tokens": 7, "completion_tokens": 0, "cost": None}
    late = Event(
        type=EventType.USAGE, data=data, agent="helper", time=last.time, seq=last.seq + 1
    )
    event_store.save([(run.pk, late)])
    catch_up.mark_late_events()  # the periodic job
    assert count()["input_tokens"] == before["input_tokens"] + 7


COSTS = st.lists(st.none() | st.floats(0, 2, allow_nan=False), min_size=0, max_size=3)
CALLS = st.lists(
    st.tuples(
        st.sampled_from(["search", "database", "weather"]),
        st.sampled_from(["done", "failed", "late", "rejected"]),
    ),
    max_size=4,
)
REASONS = st.sampled_from(
    [
        *("completed", "completed", "error", "cancelled", "blocked", "budget_exceeded"),
        *("max_steps_reached", "interrupted", "tool_failure_degraded"),
    ]
)
SCRIPTS = st.builds(
    Script,
    agent=st.sampled_from(["helper", "planner"]),
    version=st.sampled_from([None, 1, 2]),
    model=st.sampled_from(["demo/one", "demo/two"]),
    reason=REASONS,
    calls=CALLS,
    costs=COSTS,
    plans=st.integers(0, 3),
    hits=st.lists(st.sampled_from(["block", "mask", "warn", "observe"]), max_size=2),
    is_late=st.booleans(),
    began=st.integers(1, 24 * 20).map(lambda hours: ago(hours=hours)),
)


HISTORIES = {"scripts": st.lists(SCRIPTS, min_size=1, max_size=5), "steps": st.data()}
QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]


@pytest.mark.thorough
@settings(max_examples=60, deadline=None, suppress_health_check=QUIET)
@given(**HISTORIES)
def test_random_histories_equal_a_recount(count, person, scripts, steps):
    """Save, rate, roll up and delete runs in any order, then recount."""
    Run.objects.all().delete()
    for model in (DeletedFigures, DailyFigures, SummarizedDay, RunSummary):
        model.objects.all().delete()
    gone, runs = recount([])[0], []
    for script in scripts:
        script.user = person
        runs.append(script.save())
        action = steps.draw(st.sampled_from(["nothing", "rate", "delete", "roll up"]))
        one = steps.draw(st.sampled_from(runs))
        if action == "rate":
            Rating.objects.update_or_create({"is_good": True}, run=one, user=person)
        elif action == "delete":
            gone += recount([one])[0]
            runs.remove(one)
            one.delete()
        elif action == "roll up":
            count()
    assert same(count(), gone + recount(runs)[0])


def test_a_tool_that_a_model_made_up_is_not_named(count, administrator):
    run = Script(calls=[("search", "done"), ("mail ada@example.com", "failed")]).save()
    started = run.events.get(type="run_started")
    started.data = {**started.data, "tools": []}
    started.save(update_fields=["data"])

    by_tool = count(By.TOOL)
    menus = {menu.name: menu for menu in choices.build(Viewer(administrator), Selection())}

    assert {tool for (tool,) in by_tool} == {"search", UNKNOWN_TOOL}
    assert [value for value, _label in menus["tool"].options] == ["search", UNKNOWN_TOOL]
