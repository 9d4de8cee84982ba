"""The cases of an experiment: examples of a set, past runs, or texts in them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from agents.access import masking
from agents.catalog.attachments import file_context
from agents.engine.guardrails import Pattern
from agents.engine.text import shorten_line
from agents.models import Agent, Run
from agents.models.runs.runs import DRAFT_TOPIC_PREFIX, RunQuerySet
from agents.review.models import Example, ExampleSet, Rating
from agents.review.replays.reruns import RERUN_PERMISSION

from . import run_texts

RUN_COUNTS = (5, 20, 50)
MAX_QUESTIONS = 500
MAX_NAME_CHARS = 120
PROBLEM_STATUSES = [
    *(Run.Status.FAILED, Run.Status.STOPPED, Run.Status.BLOCKED, Run.Status.INTERRUPTED),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question to ask again, of an example or a run; for guardrails, a text to check."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenExamples:
    """Certain examples, of any set."""

    examples: tuple[int, ...]


Source = ExampleSet | ChosenExamples | PastRuns | ChosenRuns


@dataclass(slots=True)
class Questions:
    """What an experiment asks, and why other questions are left out."""

    chosen: list[Question] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


def load(source: Source, agent: Agent, user: User | None) -> Questions:
    """Return the questions; of runs only those that this user can review and rerun."""
    if isinstance(source, ExampleSet):
        return _of_examples(source.examples.all(), user)
    if isinstance(source, ChosenExamples):
        return _of_examples(Example.objects.filter(pk__in=source.examples), user)
    runs = _readable_runs(user).listed().executed().filter(origin_step=None)
    runs = runs.filter(agent=agent, workflow=None).exclude(status__in=Run.LIVE)
    runs = runs.exclude(topic__startswith=DRAFT_TOPIC_PREFIX)
    candidates: Iterable[Run]
    if isinstance(source, ChosenRuns):
        by_pk = runs.in_bulk(source.runs)
        candidates = [by_pk[pk] for pk in source.runs if pk in by_pk]
        limit = len(source.runs)
    else:
        if source.status == "completed":
            runs = runs.filter(status=Run.Status.COMPLETED)
        elif source.status == "problem":
            runs = runs.filter(status__in=PROBLEM_STATUSES)
        if source.rating in {"up", "down"}:
            rated = Rating.objects.filter(is_good=source.rating == "up").values("run")
            runs = runs.filter(pk__in=rated)
        # More than asked for, because runs with files are left out.
        candidates = runs.order_by("-pk")[: 3 * source.count]
        limit = source.count
    questions = Questions()
    for run in candidates:
        if len(questions.chosen) == limit:
            break
        if file_context.has_files(run):
            questions.left_out["files"] += 1
            continue
        questions.chosen.append(
            Question(name=run_name(run, user), text=run.query, history=run.history, origin=run)
        )
    return questions


def _of_examples(examples: QuerySet[Example], user: User | None) -> Questions:
    questions = Questions()
    rows = examples.select_related("run").order_by("pk")[:MAX_QUESTIONS]
    origins = [example.run_id for example in rows if example.run_id]
    readable = {*_readable_runs(user).filter(pk__in=origins).values_list("pk", flat=True)}
    for example in rows:
        origin = example.run
        if origin is not None and origin.pk not in readable:
            questions.left_out["no_access"] += 1
            continue
        questions.chosen.append(
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


def checked_runs(user: User, count: int, agents: Sequence[int] = ()) -> list[Question]:
    """Return the newest runs within a reviewer's scope, for a pattern."""
    runs = Run.objects.in_scope(user).executed().without_experiments().order_by("-pk")
    runs = runs.filter(agent__in=agents) if agents else runs
    return [Question(name="", text="", origin=run) for run in runs.only("pk")[:count]]


def checked_texts(
    user: User, count: int, rule: Pattern, agents: Sequence[int] = ()
) -> list[Question]:
    """Return the newest texts of those runs, without personal data, for a model check."""
    runs = {
        run.origin.pk: run.origin for run in checked_runs(user, count, agents) if run.origin
    }
    texts = (text.masked() for text in run_texts.load(list(runs), rule))
    return [
        Question(name=text.name, text=text.text, origin=runs[text.run])
        for text in islice((text for text in texts if text.text.strip()), count)
    ]


def run_name(run: Run, user: User | None) -> str:
    """Return a run's question as its name, masked unless it is the user's own."""
    is_own = user is not None and masking.is_own(run, user)
    text = run.query if is_own else masking.mask_text(run.query)
    return shorten_line(text, MAX_NAME_CHARS)


def left_out_sentence(reason: str, count: int) -> str:
    sentences = {
        "files": _("%(count)d with attached files, which can't be run again"),
        "no_access": _("%(count)d from runs you can't review or run again"),
    }
    return sentences[reason] % {"count": count}
