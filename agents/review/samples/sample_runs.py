"""Generates years of use in a minute: a few hundred stories as events, then copied in SQL."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from django.contrib.auth import get_user_model
from django.core.management.color import no_style
from django.db import connection, transaction
from django.db.models import Max, Model
from django.utils import timezone

from agents.models import Agent, AgentStep, Run, RunEvent
from agents.review.models import Label, Note, Rating, Review
from agents.runs import event_store

from .sample_stories import Story, StoryEvents, make_story

STORY_COUNT = 1_000
USER_COUNT = 50
DAYS = 180
BATCH_SIZE = 10_000
# Average events of a story whose answer wasn't streamed.
AVERAGE_EVENTS = 10
NAMES = ["ada", "ben", "chie", "dai", "emi", "finn", "gen", "hana", "ito", "jun", "kana", "leo"]
LABELS = ["refund", "tone", "wrong figure", "日本語", "praise"]
USERNAME_PREFIX = "seeded-"
PLAN_TABLE_SQL = """
CREATE TEMPORARY TABLE seed_plan
(run bigint PRIMARY KEY, story bigint, later bigint, person bigint)
"""
# Questions per hour of the day and day of the week.
HOUR_WEIGHTS = [
    *(1, 1, 1, 1, 1, 2, 4, 8, 16, 24, 26, 24),
    *(18, 24, 26, 24, 20, 16, 10, 8, 6, 4, 2, 1),
]
WEEKDAY_WEIGHTS = [20, 22, 21, 20, 17, 5, 4]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCopy:
    """A planned copy: story, user, and time shift in seconds."""

    run: int
    story: int
    later: int
    person: int


def has_real_runs() -> bool:
    """Whether there are runs that weren't generated."""
    people = get_user_model().objects.filter(username__startswith=USERNAME_PREFIX)
    return Run.objects.exclude(user__in=people).exists()


def seed_runs(runs: int, events: int, report: Callable[[str], None], seed: int = 7) -> None:
    random = Random(seed)
    users = get_user_model().objects
    people = []
    for number in range(USER_COUNT):
        name = f"{USERNAME_PREFIX}{NAMES[number % len(NAMES)]}-{number}"
        people.append(users.get_or_create(username=name, is_active=False)[0])
    extra = max(0, round(events / max(runs, 1)) - AVERAGE_EVENTS)
    stories = _save_stories(random, min(runs, STORY_COUNT), people, 1 + extra)
    report(f"{len(stories)} sample runs created")
    copies = _plan_copies(random, stories, people, runs - len(stories))
    with connection.cursor() as cursor:
        cursor.execute(PLAN_TABLE_SQL)
    for start in range(0, len(copies), BATCH_SIZE):
        _insert_batch(copies[start : start + BATCH_SIZE])
        report(f"{min(start + BATCH_SIZE, len(copies))} of {len(copies)} copied")
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE seed_plan")
    _add_feedback(random, since=min(stories))
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), [Run]):
            cursor.execute(statement)
        if connection.vendor == "postgresql":
            cursor.execute("ANALYZE")


def save_story(run: Run, story: Story, began: datetime) -> None:
    """Save a story like any other run."""
    run.save()
    Run.objects.filter(pk=run.pk).update(started_at=began)
    event_store.save([(run.pk, event) for event in StoryEvents(story, began).events()])


@transaction.atomic
def _save_stories(
    random: Random, count: int, people: list, chunk_count: int
) -> dict[int, datetime]:
    """Save the first runs, one after the other on the first day."""
    agents = {agent.name: agent for agent in Agent.objects.all()}
    began = timezone.now() - timedelta(days=DAYS)
    saved = {}
    for number in range(count):
        story = make_story(random, 1_000 + number, chunk_count)
        run = Run(
            user=random.choice(people),
            topic=f"seed.{number}",
            agent=agents.get(story.agent),
            agent_name=story.agent,
            model=story.model,
            query=story.query,
            history=story.history,
            status=Run.Status.COMPLETED,
        )
        kept_at = began + timedelta(seconds=number * 20)
        save_story(run, story, kept_at)
        saved[run.pk] = kept_at
    return saved


def _plan_copies(
    random: Random, saved: dict[int, datetime], people: list, count: int
) -> list[RunCopy]:
    """Return which story is copied when, in order."""
    last = Run.objects.aggregate(last=Max("pk"))["last"] or 0
    first_day = max(saved.values()) + timedelta(hours=1)
    # Working hours, more of them recent.
    midnight = first_day.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    days = [midnight + timedelta(days=n) for n in range(DAYS - 1)]
    weights = [
        WEEKDAY_WEIGHTS[day.weekday()] * (1 + 2 * n / DAYS) for n, day in enumerate(days)
    ]
    hours = random.choices(range(24), HOUR_WEIGHTS, k=count)
    moments = sorted(
        day + timedelta(seconds=hour * 3600 + random.randrange(3600))
        for day, hour in zip(random.choices(days, weights, k=count), hours, strict=True)
    )
    stories = random.choices(list(saved), k=count)
    planned = enumerate(zip(moments, stories, strict=True), start=last + 1)
    return [
        RunCopy(
            run=run,
            story=story,
            later=int((moment - saved[story]).total_seconds()),
            person=random.choice(people).pk,
        )
        for run, (moment, story) in planned
    ]


@transaction.atomic
def _insert_batch(copies: list[RunCopy]) -> None:
    rows = [(copy.run, copy.story, copy.later, copy.person) for copy in copies]
    run_changes = {"id": "plan.run", "user_id": "plan.person", "topic": "'seed.' || plan.run"}
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM seed_plan")
        cursor.executemany("INSERT INTO seed_plan VALUES (%s, %s, %s, %s)", rows)
        cursor.execute(_copy_sql(Run, "id", run_changes, ["started_at", "ended_at"]))
        row_changes = {"run_id": "plan.run"}
        cursor.execute(_copy_sql(AgentStep, "run_id", row_changes, ["started_at", "ended_at"]))
        cursor.execute(_copy_sql(RunEvent, "run_id", row_changes, ["time"]))


def _copy_sql(model: type[Model], story: str, changes: dict[str, str], times: list[str]) -> str:
    """Return SQL that copies a story's rows with another user and time."""
    if connection.vendor == "sqlite":
        shifted = "strftime('%Y-%m-%d %H:%M:%f', {}, plan.later || ' seconds')"
    else:
        shifted = "{} + plan.later * interval '1 second'"
    changes = changes | {name: shifted.format(f'told."{name}"') for name in times}
    columns = [str(field.column) for field in model._meta.concrete_fields]
    columns = [name for name in columns if name != "id" or name in changes]
    names = ", ".join(f'"{name}"' for name in columns)
    values = ", ".join(changes.get(name, f'told."{name}"') for name in columns)
    table = f'"{model._meta.db_table}"'
    join = f'{table} AS told ON told."{story}" = plan.story'
    return (
        f"INSERT INTO {table} ({names}) SELECT {values} FROM seed_plan AS plan JOIN {join}"
        " ORDER BY plan.run, told.id"
    )


def _add_feedback(random: Random, since: int) -> None:
    """Add feedback to the new runs."""
    new_runs = Run.objects.filter(pk__gte=since, user__username__startswith=USERNAME_PREFIX)
    runs = list(new_runs.order_by("pk").values_list("pk", "user_id"))
    ratings = []
    for run, user in _sample(random, runs, 0.05):
        is_good = random.random() < 0.7
        reason = "" if is_good else random.choice(Rating.Reason.values)
        ratings.append(Rating(run_id=run, user_id=user, is_good=is_good, reason=reason))
    Rating.objects.bulk_create(ratings, BATCH_SIZE)
    reviews = [
        Review(run_id=run, verdict=random.choice(["", "", *Review.Verdict.values]))
        for run, _ in _sample(random, runs, 0.01)
    ]
    Review.objects.bulk_create(reviews, BATCH_SIZE)
    labels = [(run, random.choice(LABELS)) for run, _ in _sample(random, runs, 0.02)]
    Label.objects.bulk_create(
        [Label(run_id=run, name=name) for run, name in labels], BATCH_SIZE
    )
    noted = [run for run, _ in _sample(random, runs, 0.005)]
    Note.objects.bulk_create(
        [Note(run_id=run, text="Have a look.") for run in noted], BATCH_SIZE
    )


def _sample(random: Random, runs: list, share: float) -> list:
    return random.sample(runs, int(len(runs) * share))
