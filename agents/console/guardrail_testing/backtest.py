"""Backtests a pattern on recent runs before it is saved."""

import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, cast

from django.db.models import QuerySet
from django.db.models.functions import Left

from agents.access import audit, masking
from agents.engine.guardrails import GuardrailAction, Match, Pattern, Stage, find_matches
from agents.engine.privacy import StreamingMasker, find
from agents.models import AgentStep, GuardrailPattern, Run
from agents.models.types import AnyUser
from agents.web.presentation import trace_url

SAMPLE_SIZES = (100, 1_000, 5_000)
TIMEOUT_SECONDS = 8.0
BATCH_SIZE = 100
MAX_EXAMPLES = 10
MAX_TEXT_CHARS = 200_000
CONTEXT_CHARS = 60
# The preceding text decides what is personal, so more is read than displayed.
MASKING_CONTEXT_CHARS = 300
MASK_MARKER = re.compile("‹[^‹›]*›")


class BacktestRunning(Exception):
    """Raised while another backtest runs in this process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunText:
    """A text of a run that the rule would have checked."""

    run: int
    stage: Stage
    agent: str
    value: Any  # tool input isn't always text
    is_masked: bool = False

    @property
    def text(self) -> str:
        is_text = isinstance(self.value, str)
        return self.value if is_text else json.dumps(self.value, ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchExample:
    run: int
    stage: Stage
    agent: str
    before: str
    match: str
    after: str

    @property
    def href(self) -> str:
        return trace_url(self.run)

    @property
    def stage_label(self) -> str:
        return str(GuardrailPattern.Stage(self.stage).label)


@dataclass(slots=True, kw_only=True)
class BacktestResult:
    wanted: int
    looked_at: int = 0
    runs: set[int] = field(default_factory=set)
    by_stage: Counter[str] = field(default_factory=Counter)
    by_agent: Counter[str] = field(default_factory=Counter)
    examples: list[MatchExample] = field(default_factory=list)
    is_late: bool = False
    is_masked: bool = False  # matches inside others' personal data don't count

    @property
    def stages(self) -> list[tuple[str, int]]:
        found = self.by_stage.most_common()
        return [(str(GuardrailPattern.Stage(stage).label), n) for stage, n in found]

    @property
    def agents(self) -> list[tuple[str, int]]:
        return self.by_agent.most_common()


_backtest_lock = Lock()


def backtest(
    user: AnyUser, rule: Pattern, size: int, agents: Sequence[int] = ()
) -> BacktestResult:
    """Run one backtest at a time, with a time limit; searching others' runs is audited."""
    if not _backtest_lock.acquire(blocking=False):
        raise BacktestRunning
    try:
        if user.has_perm(masking.UNMASK_PERMISSION):
            audit.record_search(user, "run", rule.pattern, "backtest")
        outcome = _scan_runs(user, rule, size, agents)
    finally:
        _backtest_lock.release()
    example_runs = {example.run for example in outcome.examples}
    audit.record_views(user, Run.objects.filter(pk__in=example_runs), "backtest")
    return outcome


def _scan_runs(
    user: AnyUser, rule: Pattern, size: int, agents: Sequence[int]
) -> BacktestResult:
    outcome = BacktestResult(wanted=size)
    deadline = time.monotonic() + TIMEOUT_SECONDS
    rules = _scan_rules(rule)
    outcome.is_masked = not user.has_perm(masking.UNMASK_PERMISSION)
    runs = Run.objects.in_scope(user).executed().without_experiments().order_by("-pk")
    runs = runs.filter(agent__in=agents) if agents else runs
    run_ids = list(runs.values_list("pk", flat=True)[:size])
    for start in range(0, len(run_ids), BATCH_SIZE):
        batch = run_ids[start : start + BATCH_SIZE]
        masked_run_ids = _masked_runs(user, batch) if outcome.is_masked else frozenset()
        for run_text in _run_texts(batch, rule, masked_run_ids):
            if time.monotonic() > deadline:
                outcome.is_late = True
                return outcome
            _record_match(outcome, run_text, rules)
        outcome.looked_at += len(batch)
    return outcome


def _masked_runs(user: AnyUser, batch: Sequence[int]) -> frozenset[int]:
    """Return which of these runs are masked for this user."""
    loaded = Run.objects.filter(pk__in=batch).only("user", "topic", "origin", "origin_step")
    runs = masking.load_origins(loaded)
    return frozenset(run.pk for run in runs if not masking.is_participant(run, user))


def _scan_rules(rule: Pattern) -> list[Pattern]:
    """Return the rule with its matches observed, and its exceptions."""
    observed_rule = replace(rule, action=GuardrailAction.WARN)
    if rule.action is GuardrailAction.ALLOW:
        return [observed_rule]
    rows = GuardrailPattern.objects.filter(enabled=True, is_observed=False, action="allow")
    return [observed_rule, *(_exception(row) for row in rows)]


def _exception(row: GuardrailPattern) -> Pattern:
    stage = cast(Stage, row.stage)
    return Pattern(pattern=row.pattern, stage=stage, action=GuardrailAction.ALLOW)


def _run_texts(
    batch: Sequence[int], rule: Pattern, masked_run_ids: frozenset[int]
) -> Iterator[RunText]:
    """Yield the texts of these runs; those of `masked_run_ids` as their reader sees them.

    Their original text isn't searched at all: even a count would reveal it, because a pattern
    can match either something hidden or something always present.
    """
    for run_text in raw_texts(batch, rule):
        is_masked = run_text.run in masked_run_ids
        yield (
            replace(run_text, value=_mask_value(run_text), is_masked=True)
            if is_masked
            else run_text
        )


def masked_texts(batch: Sequence[int], rule: Pattern) -> Iterator[RunText]:
    """Yield the texts of these runs without personal data, newest first."""
    return _run_texts(batch, rule, frozenset(batch))


def _mask_value(run_text: RunText) -> Any:
    if run_text.stage == "tool_output" and len(run_text.value) == MAX_TEXT_CHARS:
        return StreamingMasker().feed(run_text.value)  # may be cut in the middle of an address
    return masking.mask_value(run_text.value)


def raw_texts(batch: Sequence[int], rule: Pattern) -> Iterator[RunText]:
    """Return the texts of these runs at the stages that the rule applies to."""
    if rule.applies_to("input") or rule.applies_to("output"):
        yield from _conversation_texts(Run.objects.filter(pk__in=batch).order_by("-pk"), rule)
    if rule.applies_to("tool_input") or rule.applies_to("tool_output"):
        steps = AgentStep.objects.filter(run__in=batch, kind=AgentStep.Kind.TOOL)
        yield from _tool_texts(steps.order_by("-run", "number"), rule)


def _conversation_texts(runs: QuerySet, rule: Pattern) -> Iterator[RunText]:
    for pk, agent, query, answer in runs.values_list("pk", "agent_name", "query", "answer"):
        if rule.applies_to("input"):
            yield RunText(run=pk, stage="input", agent=agent, value=query)
        if rule.applies_to("output"):
            yield RunText(run=pk, stage="output", agent=agent, value=answer)


def _tool_texts(steps: QuerySet, rule: Pattern) -> Iterator[RunText]:
    short = steps.annotate(found=Left("observation", MAX_TEXT_CHARS))
    rows = short.values_list("run_id", "agent_name", "action_input", "found")
    for run_id, agent, arguments, observation in rows.iterator():
        if rule.applies_to("tool_input"):
            yield RunText(run=run_id, stage="tool_input", agent=agent, value=arguments)
        if rule.applies_to("tool_output"):
            yield RunText(run=run_id, stage="tool_output", agent=agent, value=observation)


def _record_match(outcome: BacktestResult, run_text: RunText, rules: Sequence[Pattern]) -> None:
    matches = find_matches(
        run_text.text, [rule for rule in rules if rule.applies_to(run_text.stage)]
    )
    if run_text.is_masked:
        matches = _drop_masked_matches(run_text.text, matches)
    if not matches:
        return
    is_new = run_text.run not in outcome.runs
    outcome.runs.add(run_text.run)
    outcome.by_stage[run_text.stage] += 1
    outcome.by_agent[run_text.agent] += 1
    if is_new and len(outcome.examples) < MAX_EXAMPLES:
        outcome.examples.append(_build_example(run_text, matches[0].start, matches[0].end))


def _drop_masked_matches(text: str, matches: Sequence[Match]) -> list[Match]:
    """Drop matches inside a marker such as ‹email›, which isn't original text."""
    marker_spans = [marker.span() for marker in MASK_MARKER.finditer(text)]
    return [m for m in matches if not any(a <= m.start and m.end <= b for a, b in marker_spans)]


def _build_example(run_text: RunText, start: int, end: int) -> MatchExample:
    """Return the match with its context, personal data masked."""
    first = max(0, start - MASKING_CONTEXT_CHARS)
    last = min(len(run_text.text), end + MASKING_CONTEXT_CHARS)
    excerpt = run_text.text[first:last]
    start = start - first
    end = end - first
    spans = [(s.start, s.end, s.replacement) for s in find(excerpt)]
    for a, b, _shown in spans:
        if a < end and b > start:
            start = min(start, a)
            end = max(end, b)

    def replace_range(a: int, b: int) -> str:
        return "".join(
            _replace_spans(excerpt, [s for s in spans if a <= s[0] and s[1] <= b], a, b)
        )

    return MatchExample(
        run=run_text.run,
        stage=run_text.stage,
        agent=run_text.agent,
        before=replace_range(0, start)[-CONTEXT_CHARS:],
        match=replace_range(start, end)[: 4 * CONTEXT_CHARS],
        after=replace_range(end, len(excerpt))[:CONTEXT_CHARS],
    )


def _replace_spans(
    text: str, spans: Iterable[tuple[int, int, str]], start: int, end: int
) -> Iterator[str]:
    for a, b, marker in spans:
        yield text[start:a]
        yield marker
        start = b
    yield text[start:end]
