"""Guardrail patterns and their regular expressions."""

import time
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from itertools import chain
from typing import Any, Literal, get_args

from agents.engine.errors import BadPattern

from ..sentences import Sentence as _
from .compilation import compile_re2
from .match_length import MatchBound, allow_line_breaks, match_bound
from .words import compile_words

MAX_PATTERN_CHARS = 1_000
MAX_SCAN_SECONDS = 0.2
SAMPLE_LINE = "A word, 12345 digits @ x.example/path?a=b -- 東京都 xxxxaaaa 'quoted'."
SAMPLE_TEXTS = (f"{SAMPLE_LINE}\n" * 100, SAMPLE_LINE * 100, "xa 1é-" * 1_000)
Stage = Literal["input", "output", "both", "tool_input", "tool_output"]
# "both" is a choice for patterns; a text is at one of the others.
STAGES: tuple[Stage, ...] = tuple(stage for stage in get_args(Stage) if stage != "both")


class GuardrailAction(StrEnum):
    ALLOW = "allow"
    WARN = "warn"
    MASK = "mask"
    BLOCK = "block"


OBSERVED_REASONS = {
    GuardrailAction.ALLOW: _("A rule would have allowed this."),
    GuardrailAction.WARN: _("A rule would have warned about this."),
    GuardrailAction.MASK: _("A rule would have masked this."),
    GuardrailAction.BLOCK: _("A rule would have blocked this."),
}
# Users and models read these, so they don't name the rule: its name can say what is secret.
# The finding's details have it.
DEFAULT_REASONS = {
    GuardrailAction.ALLOW: _("This text is allowed."),
    GuardrailAction.WARN: _("This text matches a rule."),
    GuardrailAction.MASK: _("Part of the text was masked."),
    GuardrailAction.BLOCK: _("This text isn't allowed here."),
}


@dataclass(frozen=True, slots=True)
class GuardrailResult:
    action: GuardrailAction
    reason: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)  # of a model check

    @property
    def blocks(self) -> bool:
        return self.action is GuardrailAction.BLOCK and not self.is_observed

    @property
    def is_observed(self) -> bool:
        """Whether the finding only reports what a rule would have done."""
        return bool(self.details.get("observed"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A rule about text: where it applies and what it does on a match.

    A match inside a match of an allow rule doesn't count. An observed rule changes nothing; it
    only reports what it would have done.
    """

    pattern: str
    is_words: bool = False  # words and phrases, one per line, instead of an expression
    name: str = ""
    stage: Stage = "both"
    action: GuardrailAction = GuardrailAction.BLOCK
    message: str = ""
    is_observed: bool = False
    id: int | None = None

    def applies_to(self, stage: Stage) -> bool:
        return self.stage == stage or (self.stage == "both" and stage in {"input", "output"})

    @property
    def label(self) -> str:
        return self.name or self.pattern

    @property
    def regex(self) -> Any:
        if self.is_words:
            return compile_words(self.pattern)
        return compile_re2(_with_line_breaks(self.pattern))

    @property
    def reach(self) -> MatchBound:
        if self.is_words:
            return compile_words(self.pattern).reach
        return match_bound(_with_line_breaks(self.pattern))

    @property
    def marker(self) -> str:
        return f"‹{self.name or '…'}›" if self._is_enforced(GuardrailAction.MASK) else ""

    @property
    def is_exception(self) -> bool:
        return self._is_enforced(GuardrailAction.ALLOW)

    @property
    def blocks(self) -> bool:
        return self._is_enforced(GuardrailAction.BLOCK)

    @property
    def is_quiet(self) -> bool:
        """Whether the text stays unchanged, even on a match."""
        return self.is_observed or self.action is GuardrailAction.WARN

    @property
    def reason(self) -> str:
        if self.is_observed:
            return OBSERVED_REASONS[self.action]
        return self.message or DEFAULT_REASONS[self.action]

    def check(self) -> None:
        """Raise BadPattern if it can't be applied."""
        if self.is_words:
            compile_words(self.pattern)
        else:
            compile_pattern(self.pattern)

    def try_out(self) -> None:
        """Raise BadPattern also if it is too slow or matches empty text."""
        self.check()
        began = time.thread_time()
        for match in chain.from_iterable(map(self.regex.finditer, SAMPLE_TEXTS)):
            if match.start() == match.end():
                raise BadPattern(
                    _(
                        "This pattern has zero-length matches. Make it match at least one "
                        "character."
                    )
                )
            if time.thread_time() - began > MAX_SCAN_SECONDS:
                break
        if time.thread_time() - began > MAX_SCAN_SECONDS:
            raise BadPattern(_("This pattern is too slow. Reduce its repetitions."))

    def finding(self, stage: Stage, matches: int) -> GuardrailResult:
        details: dict[str, Any] = {"rule": self.label, "stage": stage, "matches": matches}
        if self.id is not None:
            details["id"] = self.id
        if self.is_observed:
            details["observed"] = True
        return GuardrailResult(self.action, self.reason, details)

    def _is_enforced(self, action: GuardrailAction) -> bool:
        return self.action is action and not self.is_observed


def compile_pattern(pattern: str) -> Any:
    """Compile a pattern; raise BadPattern with the reason."""
    if not pattern:
        raise BadPattern(_("Enter a pattern."))
    if len(pattern) > MAX_PATTERN_CHARS:
        raise BadPattern(
            _("Patterns can be up to %(limit)s characters long.", limit=MAX_PATTERN_CHARS)
        )
    if r"\C" in pattern.replace(r"\\", ""):
        raise BadPattern(_("Patterns can't contain \\C (single-byte match)."))
    regex = compile_re2(pattern)
    if regex.search("") is not None:
        raise BadPattern(_("This pattern matches everything, even empty text."))
    return regex


@lru_cache(maxsize=1024)
def _with_line_breaks(pattern: str) -> str:
    """Return the pattern with line breaks allowed between words, if RE2 has the memory."""
    try:
        compile_re2(allow_line_breaks(pattern))
    except BadPattern:
        return pattern
    return allow_line_breaks(pattern)
