"""Makes experiences from feedback: ratings, corrections and examples.

It needs no model. The words are the user's or the reviewer's own, or the calls that a run made.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db.models import Exists, F, OuterRef, Q

from agents.memory import policy as memory_policy
from agents.models import AgentStep, Document, Experience, Run

from . import policy, store, texts
from .store import Lesson

MAX_RUNS = 5_000  # of each source in one pass
PAGE_SIZE = 100
MAX_CALLS = 6
MAX_INPUT_CHARS = 160
# Calls about the user, not about how a question is answered.
UNTAUGHT_TOOLS = {"remember", "ask_person"}
Kind, Source = Experience.Kind, Experience.Source

FOLLOW_UP = re.compile(
    r"\s*(?:no[,.!:;]|nope\b|wrong\b|incorrect\b|not quite\b|that(?:['’]s|\s+is|\s+was)\s+"
    r"(?:not\s+(?:right|correct|true)|wrong|incorrect)|i\s+meant\b|it\s+should\s+be\b|"
    r"いいえ|いや、|違います|ちがいます|違う[。、]|間違(?:って|い)(?:います|です)|そうではなく|正しくは)"
    r"[\s,.:;!、。：—–-]*(?P<text>.+)",
    re.IGNORECASE | re.DOTALL,
)
POLITE = re.compile(r"\s*(?:thanks?|thank you|problem|worries|ありがとう|結構)", re.IGNORECASE)
MIN_WORDS = 2
# What differs from question to question, and may be about somebody.
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|“[^”]*”|「[^」]*」")
NUMBER = re.compile(r"\d[\d,._-]{3,}")
MAX_MESSAGE_CHARS = 1_000
Period = tuple[datetime, datetime]


def learn(since: datetime, until: datetime) -> int:
    """Save what feedback of this period teaches; return how many experiences that is."""
    excluded: dict[int, bool] = {}
    saved = 0
    for lesson in _lessons(since, until):
        user = lesson.run.user_id or 0
        if user not in excluded:
            excluded[user] = memory_policy.is_excluded(user)
        if not excluded[user]:
            saved += len(store.save(lesson))
    forget_withdrawn()
    return saved


def _lessons(since: datetime, until: datetime) -> Iterator[Lesson]:
    period = (since, until)
    yield from _ratings(period)
    yield from _reviews(period)
    yield from _examples(period)
    yield from _conversations(period)


def _learnable(*conditions: Q, **feedback: Any) -> Iterator[Run]:
    """Yield the completed runs with this feedback, a page at a time."""
    runs = Run.objects.filter(policy.learnable(), *conditions, **feedback)
    found = runs.filter(status=Run.Status.COMPLETED).order_by("pk").distinct()
    pks = list(found.values_list("pk", flat=True)[:MAX_RUNS])
    for at in range(0, len(pks), PAGE_SIZE):
        page = Run.objects.filter(pk__in=pks[at : at + PAGE_SIZE]).order_by("pk")
        yield from page.select_related("agent")


def _ratings(period: Period) -> Iterator[Lesson]:
    """Yield what worked in good answers, and what users say about bad ones."""
    for run in _learnable(ratings__rated_at__range=period, ratings__user=F("user")):
        rating = run.ratings.get(user=run.user_id)
        if rating.is_good:
            yield from _success(run, Source.RATING)
        elif rating.comment.strip():
            yield _correction(run, Source.RATING, rating.comment)


def _reviews(period: Period) -> Iterator[Lesson]:
    """Yield reviewers' corrections, which are suggested for everyone."""
    for run in _learnable(~Q(review__correction=""), review__corrected_at__range=period):
        correction = run.review.correction
        yield _correction(run, Source.REVIEW, correction, is_for_everyone=True)


def _examples(period: Period) -> Iterator[Lesson]:
    """Yield examples that reviewers saved from runs, which are suggested for everyone."""
    about = {"is_for_person": False, "is_for_everyone": True}
    for run in _learnable(examples__saved_at__range=period):
        expected = run.examples.order_by("-pk")[0].expected.strip()
        if expected and expected != run.answer.strip():
            yield _correction(run, Source.EXAMPLE, expected, **about)
        else:
            yield from _success(run, Source.EXAMPLE, **about)


def _conversations(period: Period) -> Iterator[Lesson]:
    """Yield what the next message of a chat says about the answer before it."""
    for run in _learnable(ended_at__range=period):
        previous_run = _answer_before(run)
        if previous_run is not None and (text := stated_correction(run.query)):
            yield _correction(previous_run, Source.FOLLOW_UP, text, evidence=(run.pk,))


def _answer_before(run: Run) -> Run | None:
    """Return the run that answered the message before this one, on the same branch."""
    questions = [m for m in run.history if m.get("role") == "user" and m.get("content")]
    if not questions:
        return None
    same = Run.objects.filter(policy.learnable(), topic=run.topic, user=run.user_id)
    done = same.filter(status=Run.Status.COMPLETED, pk__lt=run.pk, agent=run.agent_id)
    return done.filter(query=questions[-1]["content"]).order_by("-pk").first()


def stated_correction(message: str) -> str:
    """Return what a message corrects about the answer before it, or an empty text."""
    found = FOLLOW_UP.match(message) if len(message) <= MAX_MESSAGE_CHARS else None
    if found is None or POLITE.match(found["text"]):
        return ""
    text = found["text"].strip()
    return text if len(texts.words(text)) >= MIN_WORDS else ""


def _success(run: Run, source: Experience.Source, **about: Any) -> Iterator[Lesson]:
    """Yield the calls that led to a good answer; without any there is nothing to repeat."""
    if text := _calls_text(run):
        yield _lesson(run, Kind.SUCCESS, source, text, **about)


def _correction(run: Run, source: Experience.Source, text: str, **about: Any) -> Lesson:
    return _lesson(run, Kind.CORRECTION, source, text, **about)


def _lesson(run: Run, kind: str, source: str, text: str, **about: Any) -> Lesson:
    return Lesson(
        run=run,
        kind=Kind(kind),
        source=Source(source),
        text=text,
        # A correction holds for any tools; the calls of a success need theirs.
        tools=[step.action for step in _calls(run)] if kind == Kind.SUCCESS else (),
        collections=_collections(run),
        **about,
    )


def _calls(run: Run) -> list[AgentStep]:
    """Return the run's own successful calls, in order."""
    steps = run.steps.filter(kind=AgentStep.Kind.TOOL, status=AgentStep.Status.DONE)
    own = steps.filter(agent_name__in=["", run.agent_name]).exclude(action__in=UNTAUGHT_TOOLS)
    return list(own.order_by("number")[:MAX_CALLS])


def _calls_text(run: Run) -> str:
    return " → ".join(
        f"{step.action}: {_input_text(step.action_input)}" for step in _calls(run)
    )


def _input_text(value: Any) -> str:
    """Return the arguments of a call, short: their form, without the values in quotes."""
    if isinstance(value, dict):
        value = "; ".join(f"{name}={text}" for name, text in value.items())
    # Masked before it is cut: a half of a number or key isn't recognized.
    masked = texts.masked(QUOTED.sub("'…'", str(value or "")))
    return texts.clean(NUMBER.sub("…", masked), MAX_INPUT_CHARS)


def _collections(run: Run) -> list[int]:
    """Return the collections that the run has read, which the lesson may quote."""
    steps = run.steps.exclude(sources=[]).values_list("sources", flat=True)
    documents = {source.get("document") for sources in steps for source in sources}
    found = Document.objects.filter(pk__in=documents - {None})
    return sorted(set(found.values_list("collection_id", flat=True)))


def forget_withdrawn() -> None:
    """Delete what was learned from feedback that no longer exists."""
    for kind, is_good in ((Kind.SUCCESS, True), (Kind.CORRECTION, False)):
        rated = Run.objects.filter(pk=OuterRef("run"), ratings__is_good=is_good)
        still = rated.filter(ratings__user=F("user"))
        learned = Experience.objects.filter(source=Source.RATING, kind=kind)
        learned.filter(scope=Experience.Scope.PERSON).exclude(Exists(still)).delete()
    corrected = Run.objects.filter(pk=OuterRef("run"), review__isnull=False)
    still = corrected.exclude(review__correction="")
    Experience.objects.filter(source=Source.REVIEW).exclude(Exists(still)).delete()
