"""Checks questions, answers, tool inputs and tool outputs against guardrail patterns."""

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from operator import or_
from typing import Any

import re2

from ..sentences import Sentence as _
from .compilation import compile_re2
from .match_length import EMPTY_BOUND, MatchBound, count_breaks
from .model_checks import ModelChecks
from .normalization import normalize
from .patterns import (
    STAGES,
    GuardrailAction,
    GuardrailResult,
    Pattern,
    Stage,
    compile_pattern,
)
from .stream_filter import Rule, RuleSet, StreamFilter

__all__ = [
    "STAGES",
    "GuardrailAction",
    "GuardrailResult",
    "Guardrails",
    "Inspection",
    "Pattern",
    "StreamGuard",
    "Stage",
    "by_severity",
    "compile_pattern",
    "estimate_tokens",
]

TokenCounter = Callable[[str], int]
SEVERITY = {"block": 0, "mask": 1, "warn": 2, "allow": 3}


@dataclass(frozen=True, slots=True)
class MarkerRule:
    """Matches existing masking markers, so that nothing is masked twice."""

    regex: Any
    reach: MatchBound
    marker: str = ""
    is_exception: bool = True
    blocks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """Text or data after the rules were applied, with their findings, worst first."""

    text: str = ""
    value: Any = None
    findings: tuple[GuardrailResult, ...] = ()

    @property
    def result(self) -> GuardrailResult:
        return next((f for f in self.findings if not f.is_observed), ALLOWED)

    @property
    def is_blocked(self) -> bool:
        return self.result.action is GuardrailAction.BLOCK


ALLOWED = GuardrailResult(GuardrailAction.ALLOW)


class Guardrails:
    """Checks input, output, tool input and tool output.

    Text is normalized first, so full-width letters and invisible characters can't hide a match.
    The worst finding wins. A rule that can't be applied blocks.
    """

    def __init__(
        self,
        max_input_tokens: int | None = 4096,
        max_output_tokens: int | None = 4096,
        blocked_patterns: Iterable[str | Pattern] | None = None,
        count_tokens: TokenCounter | None = None,
        model_checks: ModelChecks | None = None,
    ) -> None:
        """A limit of None is none. `model_checks` need time, so only a run applies them."""
        self.max_input_tokens = max_input_tokens
        self.max_output_tokens = max_output_tokens
        self.patterns = [
            Pattern(pattern=p) if isinstance(p, str) else p for p in blocked_patterns or ()
        ]
        for pattern in self.patterns:
            pattern.check()
        self._rules = _rules_by_stage(tuple(self.patterns))
        self.count_tokens = count_tokens or estimate_tokens
        self.model_checks = model_checks or ModelChecks()

    def inspect(self, text: str, stage: Stage) -> Inspection:
        """Return all findings in a text and the masked text."""
        limits = {"input": self.max_input_tokens, "output": self.max_output_tokens}
        limit = limits.get(stage)
        # Text with few enough bytes needs no count.
        is_long = limit is not None and max_token_count(text) > limit
        if limit is not None and is_long and (tokens := self.count_tokens(text)) > limit:
            reason = _(
                "The text is %(tokens)s tokens long; the limit is %(limit)s.",
                tokens=f"{tokens:,}",
                limit=f"{limit:,}",
            )
            details = {"tokens": tokens, "limit": limit, "stage": stage}
            finding = GuardrailResult(GuardrailAction.BLOCK, reason, details)
            return Inspection(text=text, findings=(finding,))
        stream_guard = self._stream_guard(stage)
        changed = stream_guard.whole(text)
        result_text = text if changed == text else changed  # a sentence stays one
        return Inspection(text=result_text, findings=tuple(stream_guard.findings))

    def inspect_value(self, value: Any, stage: Stage) -> Inspection:
        """Inspect data: every string, number and key in it."""
        if not self.applies_to(stage):
            return Inspection(value=value)
        findings: dict[tuple[Any, ...], GuardrailResult] = {}
        guardrails = self.without_length_limits()

        def inspect_text(text: str) -> str:
            inspected = guardrails.inspect(text, stage)
            for finding in inspected.findings:
                key = finding.action, finding.details["rule"], finding.is_observed
                matches = finding.details["matches"]
                if key in findings:
                    matches += findings[key].details["matches"]
                details = {**finding.details, "matches": matches}
                findings[key] = replace(finding, details=details)
            return inspected.text

        changed = _map_strings(value, inspect_text)
        return Inspection(value=changed, findings=tuple(by_severity(findings.values())))

    def applies_to(self, stage: Stage) -> bool:
        """Whether any rule applies to this stage."""
        return self._rules[stage].any

    def without_length_limits(self) -> "Guardrails":
        """Return the same rules without length limits, for text that agents exchange."""
        guardrails = copy(self)
        guardrails.max_input_tokens = None
        guardrails.max_output_tokens = None
        return guardrails

    def accepts(self, text: str) -> bool:
        """Whether a text can come with a message: no pattern blocks or masks any of it."""
        inspection = self.without_length_limits().inspect(text, "input")
        return not inspection.is_blocked and inspection.text == text

    def without_model_checks(self) -> "Guardrails":
        """Return the patterns alone, for text that isn't a question, a result or an answer."""
        guardrails = copy(self)
        guardrails.model_checks = ModelChecks()
        return guardrails

    def screen_output(self) -> "StreamGuard":
        return self._stream_guard("output")

    def _stream_guard(self, stage: Stage) -> "StreamGuard":
        return StreamGuard(self._rules[stage], stage)


class _StageRules:
    """The rules of a stage: those that change the text and those that only report."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        exceptions = [p for p in patterns if p.is_exception]
        loud = [p for p in patterns if not p.is_exception and not p.is_quiet]
        quiet = [p for p in patterns if p.is_quiet]
        self.any = bool(loud or quiet)
        allowed: list[Rule] = [*exceptions]
        markers = sorted({normalize(p.marker).text for p in patterns if p.marker})
        if markers:
            any_marker = compile_re2("|".join(map(re2.escape, markers)))
            reaches = (MatchBound(len(marker), count_breaks(marker)) for marker in markers)
            allowed.insert(0, MarkerRule(any_marker, reduce(or_, reaches, EMPTY_BOUND)))
        self.loud = RuleSet([*allowed, *loud] if loud else [])
        self.quiet = RuleSet([*allowed, *quiet] if quiet else [])


@lru_cache(maxsize=64)
def _rules_by_stage(patterns: tuple[Pattern, ...]) -> dict[Stage, _StageRules]:
    """Return the rules of each stage; every run of an agent has the same ones."""
    return {
        stage: _StageRules([p for p in patterns if p.applies_to(stage)]) for stage in STAGES
    }


class StreamGuard:
    """Filters streamed text with a short delay so that forbidden text is never visible.

    Rules that change nothing run on the whole text at its end.
    """

    def __init__(self, rules: _StageRules, stage: Stage) -> None:
        self._stage = stage
        self._filter = StreamFilter(rules.loud)
        self._quiet = rules.quiet
        self._passes = not rules.any
        self._pieces: list[str] = []
        self._counts: dict[Any, int] = {}

    def feed(self, piece: str) -> str:
        if self._passes:
            return piece
        if self._quiet.is_active:
            self._pieces.append(piece)
        return self._filter.feed(piece)

    def rest(self) -> str:
        """Return the text still held back, once the stream has ended."""
        if self._quiet.is_active:
            self._scan_quiet_rules("".join(self._pieces))
            self._pieces = []
        return self._filter.rest()

    def whole(self, text: str) -> str:
        """Filter a complete text."""
        if self._passes:
            return text
        if self._quiet.is_active:
            self._scan_quiet_rules(text)
        return self._filter.whole(text)

    def _scan_quiet_rules(self, text: str) -> None:
        stream_filter = StreamFilter(self._quiet)
        stream_filter.whole(text)
        self._counts = stream_filter.counts

    @property
    def held_chars(self) -> int:
        """Number of characters to be checked when the text ends."""
        return self._filter.held_chars + sum(map(len, self._pieces))

    @property
    def is_blocked(self) -> bool:
        return self._filter.blocked_by is not None

    @property
    def finding(self) -> GuardrailResult:
        return next((f for f in self.findings if not f.is_observed), ALLOWED)

    @property
    def findings(self) -> list[GuardrailResult]:
        """Findings of each rule that matched, worst first."""
        counts = {**self._filter.counts, **self._counts}
        return by_severity(rule.finding(self._stage, n) for rule, n in counts.items())


def by_severity(findings: Iterable[GuardrailResult]) -> list[GuardrailResult]:
    """Sort findings by severity, observed ones last."""
    return sorted(findings, key=lambda f: (f.is_observed, SEVERITY[f.action]))


def _map_strings(value: Any, change: Callable[[str], str]) -> Any:
    """Apply `change` to every string of the data; a number that changes becomes a string."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        fields: dict[str, Any] = {}
        for name, item in value.items():
            mapped = change(name)
            # Keys that become equal get a number.
            mapped = f"{mapped} {len(fields)}" if mapped in fields else mapped
            fields[mapped] = _map_strings(item, change)
        return fields
    if isinstance(value, list):
        return [_map_strings(item, change) for item in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    text = str(value)
    mapped = change(text)
    return value if mapped == text else mapped


def max_token_count(text: str) -> int:
    """Return how many tokens a text can have at most: each has at least one byte."""
    return len(text.encode(errors="replace"))


def estimate_tokens(text: str) -> int:
    """Estimate tokens without a tokenizer; a wide character counts as one token."""
    wide = sum(1 for c in text if c > "\u2e7f")
    return wide + -(-(len(text) - wide) // 4)
