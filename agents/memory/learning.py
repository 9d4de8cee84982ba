"""Learns from new feedback once a minute: ratings, corrections and examples.

It needs no model. The words are the user's or the reviewer's own, or the calls that a run made.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from agents.db.periodic import last_result, periodic
from agents.models import Agent, AgentStep, Document, Experience, Run

from . import experiences, outcomes, policy, style, texts
from .experiences import Lesson

JOB_NAME = "learning"
# Rows of a transaction that ends late have an earlier time than the pass that missed them.
OVERLAP = timedelta(seconds=10)
# How far back the first pass after an interruption looks.
MAX_PERIOD = timedelta(days=7)
FIRST_PERIOD = timedelta(hours=1)
MAX_RUNS = 5_000  # of each source in one pass
PAGE_SIZE = 100
MAX_CALLS = 6
MAX_INPUT_CHARS = 160
# Calls about the user, not about how a question is answered.
UNTAUGHT_TOOLS = {"remember", "ask_person"}
Kind = Experience.Kind
Scope = Experience.Scope
Source = Experience.Source

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


def is_wanted() -> bool:
    return Agent.objects.filter(learns=True).exists()


@periodic(JOB_NAME, every=60, once=True, when=is_wanted)
def learn(until: datetime | None = None) -> dict[str, Any]:
    """Learn from what was new since the last pass, which can be thousands of runs."""
    until = until or timezone.now()
    last_until = parse_datetime(last_result(JOB_NAME).get("until", ""))
    since = max(last_until or until - FIRST_PERIOD, until - MAX_PERIOD)
    saved = save_experiences(since, until)
    style.learn(since, until)
    if Experience.objects.exists():
        outcomes.count()
    return {"until": (until - OVERLAP).isoformat(), "saved": saved}


def save_experiences(since: datetime, until: datetime) -> int:
    """Save what feedback of this period teaches; return how many experiences that is."""
    period = (since, until)
    sources = (_ratings, _reviews, _examples, _conversations)
    excluded: dict[int, bool] = {}
    saved = 0
    for lesson in chain.from_iterable(source(period) for source in sources):
        user = lesson.run.user_id or 0
        if user not in excluded:
            excluded[user] = policy.is_excluded(user)
        if not excluded[user]:
            saved += len(experiences.save(lesson))
    forget_withdrawn()
    return saved


def _learnable(*conditions: Q, **feedback: Any) -> Iterator[Run]:
    """Yield the completed runs with this feedback, a page at a time."""
    runs = Run.objects.filter(policy.learnable(), *conditions, **feedback)
    completed = runs.filter(status=Run.Status.COMPLETED).order_by("pk").distinct()
    pks = list(completed.values_list("pk", flat=True)[:MAX_RUNS])
    for start in range(0, len(pks), PAGE_SIZE):
        page = Run.objects.filter(pk__in=pks[start : start + PAGE_SIZE]).order_by("pk")
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
        scopes = (Scope.PERSON, Scope.AGENT)
        yield _correction(run, Source.REVIEW, correction, scopes=scopes)


def _examples(period: Period) -> Iterator[Lesson]:
    """Yield examples that reviewers saved from runs, which are suggested for everyone."""
    for run in _learnable(examples__saved_at__range=period):
        expected = run.examples.order_by("-pk")[0].expected.strip()
        if expected and expected != run.answer.strip():
            yield _correction(run, Source.EXAMPLE, expected, scopes=(Scope.AGENT,))
        else:
            yield from _success(run, Source.EXAMPLE, scopes=(Scope.AGENT,))


def _conversations(period: Period) -> Iterator[Lesson]:
    """Yield what the next message of a chat says about the answer before it."""
    for run in _learnable(ended_at__range=period):
        questions = [m for m in run.history if m.get("role") == "user" and m.get("content")]
        text = stated_correction(run.query) if questions else ""
        if not text:
            continue
        # The run that answered the message before this one, on the same branch.
        earlier_runs = Run.objects.filter(
            policy.learnable(),
            topic=run.topic,
            user=run.user_id,
            agent=run.agent_id,
            status=Run.Status.COMPLETED,
            pk__lt=run.pk,
            query=questions[-1]["content"],
        )
        answered_run = earlier_runs.order_by("-pk").first()
        if answered_run is not None:
            yield _correction(answered_run, Source.FOLLOW_UP, text, evidence=(run.pk,))


def stated_correction(message: str) -> str:
    """Return what a message corrects about the answer before it, or an empty text."""
    match = FOLLOW_UP.match(message) if len(message) <= MAX_MESSAGE_CHARS else None
    if match is None or POLITE.match(match["text"]):
        return ""
    text = match["text"].strip()
    return text if len(texts.words(text)) >= MIN_WORDS else ""


def _success(
    run: Run, source: Experience.Source, scopes: Sequence[Experience.Scope] = (Scope.PERSON,)
) -> Iterator[Lesson]:
    """Yield the calls that led to a good answer; without any there is nothing to repeat."""
    steps = run.steps.filter(kind=AgentStep.Kind.TOOL, status=AgentStep.Status.DONE)
    own = steps.filter(agent_name__in=["", run.agent_name]).exclude(action__in=UNTAUGHT_TOOLS)
    tools: list[str] = []
    calls: list[str] = []
    for step in own.order_by("number")[:MAX_CALLS]:
        # The arguments are short: their form, without the values in quotes.
        arguments = step.action_input
        if isinstance(arguments, dict):
            arguments = "; ".join(f"{name}={text}" for name, text in arguments.items())
        # Masked before it is cut: a half of a number or key isn't recognized.
        masked = texts.masked(QUOTED.sub("'…'", str(arguments or "")))
        text = texts.clean(NUMBER.sub("…", masked), MAX_INPUT_CHARS)
        tools.append(step.action)
        calls.append(f"{step.action}: {text}")
    if calls:
        yield Lesson(
            run=run,
            kind=Kind.SUCCESS,
            source=source,
            text=" → ".join(calls),
            tools=tools,
            collections=_collections(run),
            scopes=scopes,
        )


def _correction(
    run: Run,
    source: Experience.Source,
    text: str,
    scopes: Sequence[Experience.Scope] = (Scope.PERSON,),
    evidence: Sequence[int] = (),
) -> Lesson:
    """Return the lesson of a correction, which holds for any tools."""
    return Lesson(
        run=run,
        kind=Kind.CORRECTION,
        source=source,
        text=text,
        collections=_collections(run),
        scopes=scopes,
        evidence=evidence,
    )


def _collections(run: Run) -> list[int]:
    """Return the collections that the run has read, which the lesson may quote."""
    steps = run.steps.exclude(sources=[]).values_list("sources", flat=True)
    document_ids = {source.get("document") for sources in steps for source in sources}
    documents = Document.objects.filter(pk__in=document_ids - {None})
    return sorted(set(documents.values_list("collection_id", flat=True)))


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
