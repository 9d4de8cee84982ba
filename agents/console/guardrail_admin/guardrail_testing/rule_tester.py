"""Tests a text with all rules at once, as a run would apply them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db.models import QuerySet

from agents.catalog.agent_factory import pattern_from
from agents.db.sentences import translate
from agents.engine.guardrails import (
    STAGES,
    GuardrailAction,
    Guardrails,
    Match,
    Pattern,
    Stage,
    find_matches,
)
from agents.models import GuardrailPattern

from .tester import BLOCKED_MESSAGES, MAX_SAMPLE_CHARS


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleMatch:
    """A rule that matched, and how often."""

    rule: Pattern
    count: int
    is_decisive: bool = False

    @property
    def tone(self) -> str:
        tones = {"block": "red", "mask": "amber", "warn": "blue", "allow": "green"}
        return "" if self.rule.is_observed else tones[self.rule.action]

    @property
    def action_label(self) -> str:
        return str(GuardrailPattern.Action(self.rule.action).label)


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedText:
    text: str
    names: str = ""  # of the rules that match here
    tone: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageResult:
    """What happens to the text at a stage."""

    stage: Stage
    matches: Sequence[RuleMatch] = ()
    pieces: Sequence[MarkedText] = ()
    result: str = ""
    blocked: str = ""

    @property
    def label(self) -> str:
        return str(GuardrailPattern.Stage(self.stage).label)


def check_text(text: str, agent: int | None = None) -> list[StageResult]:
    """Return what the enabled rules, of an agent or of all, make of a text per stage."""
    patterns = [pattern_from(row) for row in _rules(agent) if not row.is_model_check]
    sample = text[:MAX_SAMPLE_CHARS]
    return [_test_stage(sample, stage, patterns) for stage in STAGES]


def model_checks(agent: int | None = None) -> list[GuardrailPattern]:
    """Return the enabled model checks, which are tested on their own pages."""
    return [row for row in _rules(agent) if row.is_model_check]


def _rules(agent: int | None) -> QuerySet[GuardrailPattern]:
    if agent is not None:
        return GuardrailPattern.objects.for_agent(agent)
    return GuardrailPattern.objects.filter(enabled=True)


def _test_stage(text: str, stage: Stage, patterns: Sequence[Pattern]) -> StageResult:
    rules = [pattern for pattern in patterns if pattern.applies_to(stage)]
    inspected = Guardrails(blocked_patterns=rules).without_length_limits().inspect(text, stage)
    # Warnings report every match, outside of the exceptions; then those of the exceptions.
    warnings = [rule if rule.is_exception else _as_warning(rule) for rule in rules]
    found_matches = find_matches(text, warnings)
    for rule in rules:
        if rule.is_exception:
            found_matches += find_matches(text, [_as_warning(rule)])
    counts = Counter(getattr(match.rule, "id", None) for match in found_matches)
    decisive = None
    changed_text = ""
    blocked = ""
    if inspected.is_blocked:
        decisive = inspected.result.details.get("id")
        reason = translate(inspected.result.reason)
        blocked = BLOCKED_MESSAGES[stage]() % {"why": reason}
    elif inspected.text != text:
        changed_text = inspected.text
    return StageResult(
        stage=stage,
        matches=[
            RuleMatch(rule=rule, count=counts[rule.id], is_decisive=rule.id == decisive)
            for rule in rules
            if counts[rule.id]
        ],
        pieces=_mark(text, found_matches),
        result=changed_text,
        blocked=blocked,
    )


def _as_warning(rule: Pattern) -> Pattern:
    return replace(rule, action=GuardrailAction.WARN, message="", is_observed=False)


def _mark(text: str, matches: Sequence[Match]) -> list[MarkedText]:
    """Return the text in pieces, each with the rules that match there."""
    edges = sorted({0, len(text), *(m.start for m in matches), *(m.end for m in matches)})
    by_start = sorted(enumerate(matches), key=lambda pair: pair[1].start)
    pieces = []
    active = list[tuple[int, Match]]()
    position = 0
    for start, end in zip(edges, edges[1:], strict=False):
        # Only matches around here: a rule can match every single character.
        while position < len(by_start) and by_start[position][1].start < end:
            active.append(by_start[position])
            position += 1
        active = sorted(
            (pair for pair in active if pair[1].end > start), key=lambda pair: pair[0]
        )
        names = ", ".join(dict.fromkeys(getattr(m.rule, "label", "") for _n, m in active))
        pieces.append(MarkedText(text=text[start:end], names=names))
    return pieces
