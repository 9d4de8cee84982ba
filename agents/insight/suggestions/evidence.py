"""Finds what would make agents better, in the runs and the feedback of the last weeks.

Nothing is suggested on little evidence: a tool has to fail clearly often, an unused one has to
be unused in many runs, and feedback has to repeat itself and come from several people.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Count, Min, Q, QuerySet, Sum

from agents.engine.intervals import wilson
from agents.engine.material import find_instructions
from agents.engine.sentences import without_error_prefix
from agents.insight.problems.fingerprints import clean_subject
from agents.insight.problems.models import Problem, ProblemRun
from agents.memory import texts
from agents.metering import tool_calls
from agents.models import Agent, AgentStep, AgentTool, Run
from agents.models.runs.runs import DRAFT_TOPIC_PREFIX, EXPERIMENT_TOPIC_PREFIX
from agents.review.models import Rating, Review

from .models import MAX_SUBJECT_CHARS, MAX_TEXT_CHARS, Suggestion

Kind = Suggestion.Kind
MIN_CALLS = 20
MIN_FAILURE_RATE = 0.15
MIN_UNUSED_RUNS = 30
MIN_COMMENTS = 3
MIN_PEOPLE = 2
MIN_SIMILARITY = 0.3
MAX_RUNS = 25
MAX_COMMENTS = 500
MAX_COMMENT_CHARS = 300
# Reasons of a bad rating that an instruction can do something about.
REASONS = ("", "wrong", "incomplete", "ignored", "long", "brief", "other")
# What the loop itself offers, and what is only for rare moments.
KEPT_TOOLS = {"ask_person", "remember", "find_tools", "call_tool"}
TOOL_ADVICE = (
    "Calls of {tool} often fail with “{message}”. Check the arguments against its description "
    "before you call it. If a call fails this way, change the arguments or answer without it; "
    "don't repeat the call."
)
PLAIN_TOOL_ADVICE = (
    "Calls of {tool} often fail. Check the arguments against its description before you call "
    "it. If a call fails, change the arguments or answer without it; don't repeat the call."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What is suggested for an agent, and why."""

    agent: Agent
    kind: Suggestion.Kind
    subject: str
    text: str = ""
    figures: dict[str, Any] = field(default_factory=dict)
    runs: tuple[int, ...] = ()


def find(since: datetime) -> Iterator[Finding]:
    """Yield what the runs and the feedback since then suggest."""
    first = Run.objects.filter(started_at__gte=since).aggregate(first=Min("pk"))["first"]
    if first is None:
        return
    agents = {agent.pk: agent for agent in Agent.objects.filter(enabled=True)}
    yield from _failing_tools(first, agents)
    yield from _unused_tools(first, agents)
    yield from _repeated_feedback(since, agents)


def asked_runs() -> QuerySet[Run]:
    """Return runs of people: not of drafts, experiments, workflows or other products."""
    inner = Q(topic__startswith=DRAFT_TOPIC_PREFIX) | Q(
        topic__startswith=EXPERIMENT_TOPIC_PREFIX
    )
    return Run.objects.listed().executed().exclude(Q(workflow__isnull=False) | inner)


def tool_steps(first: int) -> QuerySet[AgentStep]:
    """Return the finished tool calls of runs since this one."""
    runs = asked_runs().filter(pk__gte=first)
    return tool_calls.finished_calls().filter(run__gte=first, run__in=runs.values("pk"))


def _failing_tools(first: int, agents: dict[int, Agent]) -> Iterator[Finding]:
    links = set(AgentTool.objects.values_list("agent", "tool__name"))
    rows = tool_calls.count_by_tool(tool_steps(first), "run__agent")
    for tool, agent_id, calls, failures in rows:
        if agent_id not in agents or (agent_id, tool) not in links or calls < MIN_CALLS:
            continue
        interval = wilson(failures, calls)
        if interval is not None and interval.low >= MIN_FAILURE_RATE:
            yield _failing_tool(first, agents[agent_id], tool, calls, failures)


def _failing_tool(first: int, agent: Agent, tool: str, calls: int, failures: int) -> Finding:
    """Suggest what to do about the tool's most frequent problem."""
    failed_runs = ProblemRun.objects.filter(
        problem__kind=Problem.Kind.TOOL_ERROR,
        problem__agent=agent,
        problem__subject=clean_subject(tool),
        run__in=asked_runs().filter(pk__gte=first).values("pk"),
    )
    grouped = failed_runs.order_by().values_list("problem", "problem__message")
    problems = list(grouped.annotate(total=Sum("times")).order_by("-total"))
    problem, message, times = problems[0] if problems else (0, "", 0)
    message = without_error_prefix(message)
    is_safe = bool(message) and not find_instructions(message)
    advice = TOOL_ADVICE if is_safe else PLAIN_TOOL_ADVICE
    newest = failed_runs.filter(problem=problem).order_by("-run").values_list("run", flat=True)
    return Finding(
        agent=agent,
        kind=Kind.TOOL_FAILS,
        subject=tool[:MAX_SUBJECT_CHARS],
        text=advice.format(tool=tool, message=message)[:MAX_TEXT_CHARS],
        figures={
            "calls": calls,
            "failures": failures,
            "message": message,
            "same": times,
            "read": sum(total for _problem, _message, total in problems),
        },
        runs=tuple(newest[:MAX_RUNS]),
    )


def _unused_tools(first: int, agents: dict[int, Agent]) -> Iterator[Finding]:
    rows = tool_calls.count_by_tool(tool_steps(first), "run__agent")
    used = {(agent_id, tool) for tool, agent_id, _calls, _failures in rows}
    runs = asked_runs().filter(pk__gte=first, agent__in=agents).exclude(status__in=Run.LIVE)
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    grouped = runs.order_by().values_list("agent", "agent_version").annotate(Count("pk"))
    for agent_id, version, count in grouped:
        counts[agent_id][version or 0] += count
    links = AgentTool.objects.filter(agent__in=counts, tool__enabled=True)
    for agent_id, tool in links.values_list("agent", "tool__name"):
        if (agent_id, tool) in used or tool in KEPT_TOOLS:
            continue
        agent = agents[agent_id]
        # Only runs of versions with the tool: it may have been added only recently.
        versions = agent.versions.filter(number__in=counts[agent_id])
        specs = versions.values_list("number", "snapshot")
        count = sum(
            counts[agent_id][number] for number, spec in specs if tool in spec.get("tools", {})
        )
        if count >= MIN_UNUSED_RUNS:
            yield Finding(
                agent=agent,
                kind=Kind.TOOL_UNUSED,
                subject=tool[:MAX_SUBJECT_CHARS],
                figures={"runs": count},
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Comment:
    """What a person says about a wrong answer, without personal data."""

    run: int
    person: int | None
    text: str
    vocabulary: frozenset[str]
    is_review: bool = False


def _repeated_feedback(since: datetime, agents: dict[int, Agent]) -> Iterator[Finding]:
    run_pks = asked_runs().values("pk")
    bad_ratings = Rating.objects.filter(is_good=False, rated_at__gte=since, run__in=run_pks)
    comments: dict[int, list[_Comment]] = defaultdict(list)
    commented = bad_ratings.filter(reason__in=REASONS).exclude(comment="").order_by("-pk")
    columns = ["run", "run__agent", "user", "comment"]
    for run, agent_id, user, text in commented.values_list(*columns)[:MAX_COMMENTS]:
        comment = _comment(run, user, text)
        if comment is not None and agent_id in agents:
            comments[agent_id].append(comment)
    corrected = Review.objects.filter(corrected_at__gte=since, run__in=run_pks)
    corrected = corrected.exclude(correction="").order_by("-corrected_at")
    columns = ["run", "run__agent", "correction"]
    for run, agent_id, text in corrected.values_list(*columns)[:MAX_COMMENTS]:
        comment = _comment(run, None, text, is_review=True)
        if comment is not None and agent_id in agents:
            comments[agent_id].append(comment)
    for agent_id, agent_comments in comments.items():
        total = bad_ratings.filter(run__agent=agent_id).count()
        for cluster in _clusters(agent_comments):
            # Several people say it, or a reviewer does, about several answers.
            people = {comment.person for comment in cluster}
            is_trusted = any(comment.is_review for comment in cluster)
            answers = {comment.run for comment in cluster}
            if len(answers) >= MIN_COMMENTS and (is_trusted or len(people) >= MIN_PEOPLE):
                yield _instruction(agents[agent_id], cluster, max(total, len(cluster)))


def _comment(
    run: int, person: int | None, text: str, *, is_review: bool = False
) -> _Comment | None:
    """Return feedback that can be an instruction: short, and no attempt to inject one."""
    line = texts.masked(texts.clean(text, 4_000))
    vocabulary = frozenset(texts.words(line))
    if len(line) > MAX_COMMENT_CHARS or len(vocabulary) < 2 or find_instructions(line):
        return None
    return _Comment(
        run=run, person=person, text=line, vocabulary=vocabulary, is_review=is_review
    )


def _clusters(comments: Iterable[_Comment]) -> list[list[_Comment]]:
    """Group comments with the first group whose first comment has similar words."""
    clusters: list[list[_Comment]] = []
    for comment in comments:
        near = (c for c in clusters if _similarity(c[0], comment) >= MIN_SIMILARITY)
        if (cluster := next(near, None)) is None:
            clusters.append([comment])
        else:
            cluster.append(comment)
    return clusters


def _similarity(first: _Comment, second: _Comment) -> float:
    return len(first.vocabulary & second.vocabulary) / len(first.vocabulary | second.vocabulary)


def _instruction(agent: Agent, cluster: list[_Comment], wrong: int) -> Finding:
    """Suggest the comment that is most like the others."""
    middle = max(
        cluster, key=lambda c: (sum(_similarity(c, other) for other in cluster), -c.run)
    )
    counts = Counter(term for comment in cluster for term in comment.vocabulary)
    common = sorted(counts, key=lambda term: (-counts[term], term))[:6]
    runs = tuple(dict.fromkeys(comment.run for comment in cluster))
    return Finding(
        agent=agent,
        kind=Kind.INSTRUCTION,
        subject=" ".join(sorted(common))[:MAX_SUBJECT_CHARS],
        text=middle.text,
        figures={"comments": len(runs), "wrong": wrong},
        runs=runs[:MAX_RUNS],
    )
