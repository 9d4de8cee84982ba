"""On how many of the last runs a pattern would have fired, before it is kept."""

import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Left

from agents.access import audit, masking
from agents.engine.guardrails.checks import GuardrailAction, Pattern
from agents.engine.guardrails.stream_filter import Match, found_in
from agents.engine.privacy.masking import Growing, find
from agents.models import AgentStep, GuardrailPattern, Run
from agents.web.presentation import trace_url

SIZES = (100, 1_000, 5_000)
SECONDS = 8.0
A_BATCH = 100
MOST_EXAMPLES = 10
MOST_CHARACTERS = 200_000
AROUND = 60
# What is personal is told by what stands before it, so more is read than is shown.
READ_AROUND = 300
MARK = re.compile("‹[^‹›]*›")


class Busy(Exception):
    """Another back-test is under way in this process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Something that was said in a run, where the rule would have looked."""

    run: int
    stage: str
    agent: str
    value: Any  # what a tool was given is not always a text
    is_masked: bool = False

    @property
    def text(self) -> str:
        is_text = isinstance(self.value, str)
        return self.value if is_text else json.dumps(self.value, ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    run: int
    stage: str
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
class Outcome:
    wanted: int
    looked_at: int = 0
    runs: set[int] = field(default_factory=set)
    by_stage: Counter[str] = field(default_factory=Counter)
    by_agent: Counter[str] = field(default_factory=Counter)
    examples: list[Example] = field(default_factory=list)
    is_late: bool = False
    is_masked: bool = False  # matches inside personal data of others are not counted

    @property
    def stages(self) -> list[tuple[str, int]]:
        found = self.by_stage.most_common()
        return [(str(GuardrailPattern.Stage(stage).label), n) for stage, n in found]

    @property
    def agents(self) -> list[tuple[str, int]]:
        return self.by_agent.most_common()


_at_work = Lock()


def backtest(user: Any, rule: Pattern, size: int, agents: Sequence[int] = ()) -> Outcome:
    """One at a time, for so long at most; whoever looks at others' runs leaves an entry."""
    if not _at_work.acquire(blocking=False):
        raise Busy
    try:
        if user.has_perm(masking.SEE_ALL):
            audit.searched(user, "run", rule.pattern, "backtest")
        outcome = _looked(user, rule, size, agents)
    finally:
        _at_work.release()
    shown = {example.run for example in outcome.examples}
    audit.viewed_all(user, Run.objects.filter(pk__in=shown), "backtest")
    return outcome


def _looked(user: Any, rule: Pattern, size: int, agents: Sequence[int]) -> Outcome:
    outcome, ends = Outcome(wanted=size), time.monotonic() + SECONDS
    rules, outcome.is_masked = _rules(rule), not user.has_perm(masking.SEE_ALL)
    runs = Run.objects.in_scope(user).order_by("-pk")
    runs = runs.filter(agent__in=agents) if agents else runs
    numbers = list(runs.values_list("pk", flat=True)[:size])
    for at in range(0, len(numbers), A_BATCH):
        batch = numbers[at : at + A_BATCH]
        hidden = _hidden_from(user, batch) if outcome.is_masked else frozenset()
        for text in _texts(batch, rule, hidden):
            if time.monotonic() > ends:
                outcome.is_late = True
                return outcome
            _note(outcome, text, rules)
        outcome.looked_at += len(batch)
    return outcome


def _hidden_from(user: Any, batch: Sequence[int]) -> frozenset[int]:
    """Those of these runs that this person is shown masked."""
    told = Run.objects.filter(pk__in=batch).only("user", "topic", "origin", "origin_step")
    runs = masking.with_origins(told)
    return frozenset(run.pk for run in runs if not masking.is_open(run, user))


def _rules(rule: Pattern) -> list[Pattern]:
    """The rule, as one whose matches are seen whatever it does, and the exceptions to it."""
    seen = replace(rule, action=GuardrailAction.WARN)
    if rule.action is GuardrailAction.ALLOW:
        return [seen]
    rows = GuardrailPattern.objects.filter(enabled=True, is_observed=False, action="allow")
    allow = GuardrailAction.ALLOW
    return [seen, *(Pattern(pattern=r.pattern, stage=r.stage, action=allow) for r in rows)]


def _texts(batch: Sequence[int], rule: Pattern, hidden: frozenset[int]) -> Iterator[Text]:
    """What was said in these runs; in `hidden` ones, as their reader may read it.

    Of those the text itself is not searched at all. To count what is found in both would
    still tell: a pattern can name something hidden or else something that is always there.
    """
    for text in _raw_texts(batch, rule):
        is_masked = text.run in hidden
        yield replace(text, value=_masked_value(text), is_masked=True) if is_masked else text


def _masked_value(text: Text) -> Any:
    if text.stage == "tool_output" and len(text.value) == MOST_CHARACTERS:
        return Growing().feed(text.value)  # it is cut, maybe in the middle of an address
    return masking.masked_value(text.value)


def _raw_texts(batch: Sequence[int], rule: Pattern) -> Iterator[Text]:
    if rule.watches("input") or rule.watches("output"):
        yield from _said(Run.objects.filter(pk__in=batch).order_by("-pk"), rule)
    if rule.watches("tool_input") or rule.watches("tool_output"):
        steps = AgentStep.objects.filter(run__in=batch, kind=AgentStep.Kind.TOOL)
        yield from _used(steps.order_by("-run", "number"), rule)


def _said(runs: QuerySet, rule: Pattern) -> Iterator[Text]:
    for pk, agent, query, answer in runs.values_list("pk", "agent_name", "query", "answer"):
        if rule.watches("input"):
            yield Text(run=pk, stage="input", agent=agent, value=query)
        if rule.watches("output"):
            yield Text(run=pk, stage="output", agent=agent, value=answer)


def _used(steps: QuerySet, rule: Pattern) -> Iterator[Text]:
    short = steps.annotate(found=Left("observation", MOST_CHARACTERS))
    rows = short.values_list("run_id", "agent_name", "action_input", "found")
    for run, agent, given, found in rows.iterator():
        if rule.watches("tool_input"):
            yield Text(run=run, stage="tool_input", agent=agent, value=given)
        if rule.watches("tool_output"):
            yield Text(run=run, stage="tool_output", agent=agent, value=found)


def _note(outcome: Outcome, text: Text, rules: Sequence[Pattern]) -> None:
    found = found_in(text.text, [rule for rule in rules if rule.watches(text.stage)])
    if text.is_masked:
        found = _outside_marks(text.text, found)
    if not found:
        return
    is_new = text.run not in outcome.runs
    outcome.runs.add(text.run)
    outcome.by_stage[text.stage] += 1
    outcome.by_agent[text.agent] += 1
    if is_new and len(outcome.examples) < MOST_EXAMPLES:
        outcome.examples.append(_example(text, found[0].start, found[0].end))


def _outside_marks(text: str, found: Sequence[Match]) -> list[Match]:
    """Without those that lie within a mark such as ‹email›, which nobody wrote."""
    marks = [mark.span() for mark in MARK.finditer(text)]
    return [m for m in found if not any(a <= m.start and m.end <= b for a, b in marks)]


def _example(text: Text, start: int, end: int) -> Example:
    """The match and what stands around it, with everything personal masked."""
    first, last = max(0, start - READ_AROUND), min(len(text.text), end + READ_AROUND)
    part = text.text[first:last]
    start, end = start - first, end - first
    spans = [(s.start, s.end, s.replacement) for s in find(part)]
    for a, b, _shown in spans:
        if a < end and b > start:
            start, end = min(start, a), max(end, b)

    def shown(a: int, b: int) -> str:
        return "".join(_masked(part, [s for s in spans if a <= s[0] and s[1] <= b], a, b))

    return Example(
        run=text.run,
        stage=text.stage,
        agent=text.agent,
        before=shown(0, start)[-AROUND:],
        match=shown(start, end)[: 4 * AROUND],
        after=shown(end, len(part))[:AROUND],
    )


def _masked(
    text: str, spans: Iterable[tuple[int, int, str]], start: int, end: int
) -> Iterator[str]:
    for a, b, marker in spans:
        yield text[start:a]
        yield marker
        start = b
    yield text[start:end]
