"""Replaces personal data by aliases before it reaches a model, and restores it afterwards.

A value has the same alias for a whole run, e.g. `‹email 1›`. Aliases in the model's text are
restored before anyone reads or uses it, even if they aren't copied exactly.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any

from agents.engine.state import Message
from agents.engine.turn.assembly import PlanResult, ToolCall

from .masking import PiiKind, PiiSpan, find, merge_spans

ALIAS_INSTRUCTIONS = (
    "Some values are replaced by placeholders in marks, such as ‹email 1› or ‹phone 2›. "
    "Use a placeholder exactly as it is written wherever you need its value, in answers and "
    "in the input of tools; the value is put in before anybody reads or uses it."
)
MIN_VALUE_CHARS = 6
MAX_CACHED_CHARS = 2_000_000
FENCED_TEXT = re.compile(r"(\s*```\w*\s)(.*)(```\s*)", re.S)
ALIAS = re.compile(rf"‹(?:{'|'.join(kind.value for kind in PiiKind)}) [0-9]{{1,5}}›")


class Pseudonymizer:
    """The aliases of one run, shared by agents that work for each other."""

    def __init__(self) -> None:
        self._aliases: dict[str, str] = {}
        self._values: dict[str, str] = {}
        self._kinds: dict[str, PiiKind] = {}
        self._found: dict[str, tuple[PiiSpan, ...]] = {}
        self._size = 0
        self._last: Counter[str] = Counter()
        self._lock = Lock()  # requests are built in threads, and agents run concurrently

    @property
    def has_aliases(self) -> bool:
        """Whether there is anything to restore."""
        return bool(self._values)

    def remember(self, replaced: Mapping[str, str]) -> None:
        """Restore the aliases used before an interruption."""
        with self._lock:
            for alias, value in replaced.items():
                kind = self._reserve(alias)
                if value not in self._aliases and alias not in self._values:
                    self._aliases[value] = alias
                    self._values[alias] = value
                    self._kinds[value] = kind

    def hide(self, text: str) -> str:
        """Replace all personal data in the text by aliases."""
        start = 0
        pieces = []
        for span in self.find(text):
            pieces += [text[start : span.start], self._aliases[text[span.start : span.end]]]
            start = span.end
        return "".join([*pieces, text[start:]])

    def find(self, text: str) -> tuple[PiiSpan, ...]:
        """Return spans of personal data, in order, and assign them aliases."""
        with self._lock:
            for alias in ALIAS.findall(text):
                self._reserve(alias)  # the user wrote it; it doesn't stand for a value
            # Cached, because the history is sent again every turn.
            if text not in self._found:
                self._found[text] = find(text)
                self._size += len(text)
                while self._size > MAX_CACHED_CHARS and len(self._found) > 1:
                    oldest = next(iter(self._found))
                    del self._found[oldest]
                    self._size -= len(oldest)
            spans = self._found[text]
            self._assign_aliases(text, spans)
            if repeated := self._find_known(text, spans):
                spans = merge_spans([*spans, *repeated])
                self._assign_aliases(text, spans)
            return spans

    def hide_json(self, text: str) -> str:
        """Replace personal data in JSON, which stays valid."""
        self.find(text)  # a field's name can identify its value
        return map_json(text, self.hide)

    def pseudonymize(self, messages: Sequence[Message]) -> list[Message]:
        """Replace personal data in the messages, except in the model's own reasoning."""
        pseudonymized = []
        for message in messages:
            hidden = dict(message)
            if isinstance(message.get("content"), str):
                hidden["content"] = self.hide(message["content"])
            if calls := message.get("tool_calls"):
                hidden["tool_calls"] = []
                for call in calls:
                    function = call.get("function") or {}
                    arguments = self.hide_json(function.get("arguments") or "{}")
                    function = {**function, "arguments": arguments}
                    hidden["tool_calls"].append({**call, "function": function})
            pseudonymized.append(hidden)
        return pseudonymized

    def aliases(self, messages: Sequence[Message]) -> dict[str, str]:
        """Return the aliases in these messages with their values."""
        used = ALIAS.findall(json.dumps(list(messages), ensure_ascii=False))
        return {alias: self._values[alias] for alias in used if alias in self._values}

    def restore(self, text: str, start: int = 0) -> str:
        """Restore the values in the text from `start` on."""
        pieces = []
        for match in WRITTEN_ALIAS.finditer(text, start) if self.has_aliases else ():
            kind = next(kind for kind in _KINDS if match[kind.name])
            alias = f"‹{kind.value} {int(match['number'])}›"
            pieces += [text[start : match.start()], self._values.get(alias, match[0])]
            start = match.end()
        return "".join([*pieces, text[start:]])

    def restore_plan(self, plan: PlanResult) -> PlanResult:
        """Return the plan with values restored."""
        calls = tuple(map(self._restore_call, plan.calls))
        turn = replace(
            plan.turn,
            content=self._restore_text(plan.turn.content),
            reasoning=self.restore(plan.turn.reasoning),
            tool_calls=tuple(map(self._restore_call, plan.turn.tool_calls)),
        )
        final = plan.final_answer
        return replace(
            plan,
            thought=self.restore(plan.thought),
            action_input=_map_leaves(plan.action_input, self._restore_text),
            final_answer=None if final is None else self._restore_text(final),
            calls=calls,
            turn=turn,
        )

    def _restore_call(self, call: ToolCall) -> ToolCall:
        return replace(call, arguments=self._restore_text(call.arguments))

    def _restore_text(self, text: str) -> str:
        """Restore the values in the text; JSON, fenced or not, stays valid."""
        if not self.has_aliases:
            return text
        if fenced := FENCED_TEXT.fullmatch(text):
            return f"{fenced[1]}{map_json(fenced[2], self.restore)}{fenced[3]}"
        return map_json(text, self.restore)

    def _assign_aliases(self, text: str, spans: Iterable[PiiSpan]) -> None:
        for span in spans:
            value = text[span.start : span.end]
            if value not in self._aliases:
                alias = self._aliases[value] = self._new_alias(span.kind)
                self._values[alias] = value
                self._kinds[value] = span.kind

    def _reserve(self, alias: str) -> PiiKind:
        """Mark the numbers up to this one as used."""
        kind, _, number = alias.strip("‹›").rpartition(" ")
        self._last[kind] = max(self._last[kind], int(number))
        return PiiKind(kind)

    def _new_alias(self, kind: PiiKind) -> str:
        self._last[kind.value] += 1
        return f"‹{kind.value} {self._last[kind.value]}›"

    def _find_known(self, text: str, spans: Sequence[PiiSpan]) -> list[PiiSpan]:
        """Find known values in the text, such as an account number without its label."""
        start = 0
        pieces = []
        for span in spans:
            pieces.append(text[start : span.start])
            start = span.end
        unmasked_text = "\n".join([*pieces, text[start:]])
        # Only a long value can be told without its label, or one that is the whole text.
        known_values = [
            value
            for value in self._aliases
            if value in unmasked_text and (len(value) >= MIN_VALUE_CHARS or value == text)
        ]
        if not known_values:
            return []
        values = "|".join(map(re.escape, sorted(known_values, key=len, reverse=True)))
        matches = re.finditer(rf"(?<![0-9A-Za-z])(?:{values})(?![0-9A-Za-z])", text)
        return [PiiSpan(kind=self._kinds[m[0]], start=m.start(), end=m.end()) for m in matches]


class StreamingRestorer:
    """Restores values in streamed text without showing half an alias."""

    def __init__(self, pseudonymizer: Pseudonymizer) -> None:
        self._pseudonymizer = pseudonymizer
        self._held = ""
        self._last_char = ""  # of what was released

    def feed(self, piece: str) -> str:
        """Add a piece and return what can be released."""
        self._held += piece
        text = self._last_char + self._held
        start = len(self._last_char)
        partial = PARTIAL_ALIAS.search(text, start) if self._pseudonymizer.has_aliases else None
        return self._release(partial.start() - start if partial else len(self._held))

    def rest(self) -> str:
        """Return the text still held back, once the stream has ended."""
        return self._release(len(self._held))

    def _release(self, until: int) -> str:
        text = self._last_char + self._held[:until]
        start = len(self._last_char)
        self._held = self._held[until:]
        self._last_char = text[-1:]
        return self._pseudonymizer.restore(text, start)


class PlanRestorer:
    """Restores values in a reply as it streams, and in its plan."""

    def __init__(self, pseudonymizer: Pseudonymizer) -> None:
        self._pseudonymizer = pseudonymizer
        self._restorers: dict[str, StreamingRestorer] = {}
        self._last: dict[str, Any] = {}

    def feed(self, delta: Any) -> Any:
        """Return the delta with values restored, or None if there is nothing to release."""
        restorer = self._restorers.setdefault(
            delta.kind, StreamingRestorer(self._pseudonymizer)
        )
        self._last[delta.kind] = delta
        text = restorer.feed(delta.text)
        return replace(delta, text=text) if text else None

    def rest(self) -> list[Any]:
        """Return the text still held back."""
        return [
            replace(self._last[kind], text=text)
            for kind, restorer in self._restorers.items()
            if (text := restorer.rest())
        ]

    def plan(self, plan: PlanResult) -> PlanResult:
        return self._pseudonymizer.restore_plan(plan)


def map_json(text: str, change: Callable[[str], str]) -> str:
    """Change the text; in JSON, every string, so that it stays valid."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return change(text)
    if not isinstance(value, dict | list):
        return change(text)
    changed = _map_leaves(value, change)
    return text if changed == value else json.dumps(changed, ensure_ascii=False)


def _map_leaves(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _map_leaves(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_map_leaves(item, change) for item in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return value if (text := change(str(value))) == str(value) else text


# How models write aliases: with other marks or none, in capitals, with other gaps and digits.
GAP = r"[\s_‐‑–-]"
# Full-width digits too: a stream must cut its text exactly where the whole text would.
WORD = r"\dA-Za-z_"
OPENING_MARKS = "‹<«〈＜《"
CLOSING_MARKS = "›>»〉＞》"


def _letter_patterns(kind: PiiKind) -> list[str]:
    """Return patterns for the letters of a kind's name."""
    if kind is PiiKind.EMAIL:
        return ["e", "-?", *"mail"]
    return [rf"{GAP}{{0,3}}" if letter == " " else letter for letter in kind.value]


def _prefix_pattern(kind: PiiKind) -> str:
    """Return a pattern for every prefix of an alias."""
    tokens = [
        *_letter_patterns(kind),
        rf"{GAP}{{0,3}}",
        r"\d{1,5}",
        r"\s{0,2}",
        f"[{CLOSING_MARKS}]",
    ]
    pattern = ""
    for token in reversed(tokens):
        pattern = f"(?:{token}{pattern})?"
    return pattern


_KINDS = sorted(PiiKind, key=lambda kind: -len(kind.value))
_NAMES = "|".join(f"(?P<{kind.name}>{''.join(_letter_patterns(kind))})" for kind in _KINDS)
WRITTEN_ALIAS = re.compile(
    rf"(?:(?P<open>[{OPENING_MARKS}])\s{{0,2}})?(?<![{WORD}])"
    rf"(?:{_NAMES})"
    rf"{GAP}{{0,3}}(?P<number>\d{{1,5}})(?![{WORD}])"
    rf"(?(open)(?:\s{{0,2}}[{CLOSING_MARKS}])?|(?:\s{{0,2}}›)?)",
    re.I,
)
PARTIAL_ALIAS = re.compile(
    rf"(?:[{OPENING_MARKS}]\s{{0,2}}|(?<![{WORD}])(?=[a-z]))"
    rf"(?:{'|'.join(_prefix_pattern(kind) for kind in _KINDS)})\Z",
    re.I,
)
