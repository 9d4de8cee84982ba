"""The questions of an experiment: examples of a set, or past runs of an agent."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from agents.access import masking
from agents.catalog import file_context
from agents.engine.text import shorten_line
from agents.models import Agent, Run
from agents.models.runs import DRAFT_TOPIC_PREFIX, RunQuerySet
from agents.review.models import Example, ExampleSet, Rating
from agents.review.reruns import RERUN_PERMISSION

RUN_COUNTS = (5, 20, 50)
MAX_QUESTIONS = 500
MAX_NAME_CHARS = 120
PROBLEM_STATUSES = [
    *(Run.Status.FAILED, Run.Status.STOPPED, Run.Status.BLOCKED, Run.Status.INTERRUPTED),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question to ask again, of an example or a run."""

    name: str
    text: str
    history: list[Any] = field(default_factory=list)
    example: Example | None = None
    origin: Run | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRuns:
    """The newest runs of an agent that a user can review, filtered."""

    count: int = 20
    status: str = ""  # "completed", "problem" or any
    rating: str = ""  # "up", "down" or any


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenRuns:
    """Certain runs of an agent, in this order; those that a user can't review are left out."""

    runs: tuple[int, ...]


Source = ExampleSet | PastRuns | ChosenRuns


@dataclass(slots=True)
class Questions:
    """What an experiment asks, and why other questions are left out."""

    found: list[Question] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


def load(source: Source, agent: Agent, user: User | None) -> Questions:
    """Return the questions; of runs only those that this user can review and rerun."""
    if isinstance(source, ExampleSet):
        return _of_set(source, user)
    if isinstance(source, ChosenRuns):
        return _questions(_chosen(source, agent, user), len(source.runs), user)
    return _questions(_newest(source, agent, user), source.count, user)


def _of_set(example_set: ExampleSet, user: User | None) -> Questions:
    questions = Questions()
    rows = example_set.examples.select_related("run").order_by("pk")[:MAX_QUESTIONS]
    origins = [example.run_id for example in rows if example.run_id]
    readable = {*_readable_runs(user).filter(pk__in=origins).values_list("pk", flat=True)}
    for example in rows:
        origin = example.run
        if origin is not None and origin.pk not in readable:
            questions.left_out["no_access"] += 1
            continue
        questions.found.append(
            Question(
                name=example.name,
                text=example.question,
                history=example.history,
                example=example,
                origin=origin,
            )
        )
    return questions


def _readable_runs(user: User | None) -> RunQuerySet:
    """Return the runs whose questions this user can ask again; from a terminal, all."""
    if user is None:
        return Run.objects.all()
    runs = Run.objects.for_user(user)
    return runs if user.has_perm(RERUN_PERMISSION) else runs.filter(user=user)


def _questions(runs: Iterable[Run], most: int, user: User | None) -> Questions:
    questions = Questions()
    for run in runs:
        if len(questions.found) == most:
            break
        if file_context.has_files(run):
            questions.left_out["files"] += 1
            continue
        questions.found.append(
            Question(name=run_name(run, user), text=run.query, history=run.history, origin=run)
        )
    return questions


def _repeatable(agent: Agent, user: User | None) -> RunQuerySet:
    runs = _readable_runs(user).listed()
    runs = runs.filter(agent=agent, workflow=None).exclude(status__in=Run.LIVE)
    runs = runs.exclude(topic__startswith=DRAFT_TOPIC_PREFIX).executed()
    return runs.filter(origin_step=None)


def _chosen(source: ChosenRuns, agent: Agent, user: User | None) -> Iterator[Run]:
    runs = _repeatable(agent, user).in_bulk(source.runs)
    yield from (runs[pk] for pk in source.runs if pk in runs)


def _newest(past: PastRuns, agent: Agent, user: User | None) -> Iterator[Run]:
    runs = _repeatable(agent, user)
    if past.status == "completed":
        runs = runs.filter(status=Run.Status.COMPLETED)
    elif past.status == "problem":
        runs = runs.filter(status__in=PROBLEM_STATUSES)
    if past.rating in {"up", "down"}:
        rated = Rating.objects.filter(is_good=past.rating == "up").values("run")
        runs = runs.filter(pk__in=rated)
    yield from runs.order_by("-pk")[: 3 * past.count]


def run_name(run: Run, user: User | None) -> str:
    """Return a run's question as its name, masked unless it is the user's own."""
    is_own = user is not None and masking.is_own(run, user)
    text = run.query if is_own else masking.mask_text(run.query)
    return shorten_line(text, MAX_NAME_CHARS)


def left_out_sentence(reason: str, count: int) -> str:
    sentences = {
        "files": _("%(count)d with attached files, which can't be repeated"),
        "no_access": _("%(count)d from runs you can't review or rerun"),
    }
    return sentences[reason] % {"count": count}
