"""What may be asked and what may be answered."""

import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any, Literal

import re2

from .errors import BadPattern

MOST_PATTERN_CHARACTERS = 1_000
Stage = Literal["input", "output", "both"]
TokenCounter = Callable[[str], int]


class GuardrailAction(StrEnum):
    ALLOW = "allow"
    WARN = "warn"
    BLOCK = "block"


@dataclass(frozen=True, slots=True)
class GuardrailResult:
    action: GuardrailAction
    reason: str = ""
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A rule about text: where it looks, and what it does when it finds something."""

    pattern: str
    name: str = ""
    stage: Stage = "both"
    action: GuardrailAction = GuardrailAction.BLOCK
    message: str = ""

    def watches(self, stage: Stage) -> bool:
        return self.stage in {stage, "both"}

    def finds(self, text: str) -> bool:
        return compile_pattern(self.pattern).search(text) is not None

    @property
    def reason(self) -> str:
        return self.message or f"It matches the rule {self.name or self.pattern!r}."


ALLOWED = GuardrailResult(GuardrailAction.ALLOW)


class Guardrails:
    """Checks what comes in and what goes out.

    The text is normalised first, so that full-width letters and invisible characters hide
    nothing. The worst finding wins; a rule that cannot be applied blocks.
    """

    def __init__(
        self,
        max_input_tokens: int = 4096,
        max_output_tokens: int = 4096,
        blocked_patterns: Iterable[str | Pattern] | None = None,
        count_tokens: TokenCounter | None = None,
    ) -> None:
        self.max_input_tokens = max_input_tokens
        self.max_output_tokens = max_output_tokens
        self.patterns = [
            Pattern(pattern=p) if isinstance(p, str) else p for p in blocked_patterns or ()
        ]
        for pattern in self.patterns:
            compile_pattern(pattern.pattern)
        self.count_tokens = count_tokens or estimate_tokens

    def check_input(self, text: str) -> GuardrailResult:
        return self._check(text, "input", self.max_input_tokens)

    def check_output(self, text: str) -> GuardrailResult:
        return self._check(text, "output", self.max_output_tokens)

    def at_any_length(self) -> "Guardrails":
        """The same rules for what agents say to each other, or together: nobody typed that."""
        rules = copy(self)
        rules.max_input_tokens = rules.max_output_tokens = sys.maxsize
        return rules

    def screen_output(self) -> "Screen":
        return Screen([p for p in self.patterns if p.watches("output")])

    def _check(self, text: str, stage: Stage, most: int) -> GuardrailResult:
        # No token is less than a byte: what is short enough so need not be counted.
        is_short = len(text.encode(errors="replace")) <= most
        tokens = 0 if is_short else self.count_tokens(text)
        if tokens > most:
            return GuardrailResult(
                GuardrailAction.BLOCK,
                f"It is {tokens:,} tokens long; at most {most:,} are allowed.",
                {"tokens": tokens, "limit": most, "stage": stage},
            )
        return _worst(normalise(text), stage, self.patterns)


class Screen:
    """Lets streamed text through, a little behind, so that what is blocked is not shown.

    The last `window` characters wait until it is known what follows them; only of a longer
    match could the beginning be seen before all of it is withdrawn.
    """

    window = 80

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        # What looks for the end of the text has to wait for it: `check_output` does.
        self._patterns = [
            p
            for p in patterns
            if p.action is GuardrailAction.BLOCK and not p.pattern.endswith(("$", r"\z"))
        ]
        self._text = ""
        self._shown = 0
        self.finding = ALLOWED

    def feed(self, piece: str) -> str:
        if not self._patterns:
            return piece
        self._text += piece
        self.finding = _worst(normalise(self._text), "output", self._patterns)
        if self.blocked:
            return ""
        return self._release(len(self._text) - self.window)

    def rest(self) -> str:
        """What was still waiting, once the text has ended."""
        return "" if self.blocked else self._release(len(self._text))

    @property
    def blocked(self) -> bool:
        return self.finding.action is GuardrailAction.BLOCK

    def _release(self, until: int) -> str:
        start, self._shown = self._shown, max(self._shown, until)
        return self._text[start : self._shown]


def compile_pattern(pattern: str) -> Any:
    """The compiled pattern; raises BadPattern with the reason in words."""
    if not pattern:
        raise BadPattern("A pattern cannot be empty.")
    if len(pattern) > MOST_PATTERN_CHARACTERS:
        raise BadPattern(f"A pattern has at most {MOST_PATTERN_CHARACTERS} characters.")
    compiled = _compiled(pattern)
    if compiled.search("") is not None:
        raise BadPattern("This pattern matches everything, even an empty text.")
    return compiled


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 8 << 20
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0]
        words = reason.decode() if isinstance(reason, bytes) else str(reason)
        raise BadPattern(f"This is not a regular expression RE2 can read: {words}.") from error


def _worst(text: str, stage: Stage, patterns: Iterable[Pattern]) -> GuardrailResult:
    found = [p for p in patterns if p.watches(stage) and p.finds(text)]
    blocking = [p for p in found if p.action is GuardrailAction.BLOCK]
    for pattern in blocking or found:
        return GuardrailResult(
            pattern.action,
            pattern.reason,
            {"rule": pattern.name or pattern.pattern, "stage": stage},
        )
    return ALLOWED


def normalise(text: str) -> str:
    """The text as a reader takes it: one form for each letter, nothing invisible."""
    if text.isascii():
        return text
    plain = unicodedata.normalize("NFKC", text)
    return "".join(c for c in plain if unicodedata.category(c) != "Cf")


def estimate_tokens(text: str) -> int:
    """A careful guess, for where no tokenizer is at hand: wide characters count whole."""
    wide = sum(1 for c in text if c > "\u2e7f")
    return wide + -(-(len(text) - wide) // 4)
