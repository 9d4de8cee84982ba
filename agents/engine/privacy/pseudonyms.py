"""Personal data that a model is not shown: aliases go out in its place, and it comes back.

The same value has the same alias for a whole run, `‹email 1›`. What the model writes is put
right before anybody reads or uses it, also where it did not copy an alias letter by letter.
"""

import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from threading import Lock
from typing import Any

from agents.engine.errors import AgentError
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
    """What one run keeps from its models. Agents that work for each other share it."""

    def __init__(self) -> None:
        self._aliases: dict[str, str] = {}
        self._values: dict[str, str] = {}
        self._kinds: dict[str, PiiKind] = {}
        self._found: dict[str, tuple[PiiSpan, ...]] = {}
        self._size = 0
        self._last: Counter[str] = Counter()
        self._lock = Lock()  # requests are made in threads, and agents work side by side

    @property
    def has_aliases(self) -> bool:
        """Whether there is anything that could come back."""
        return bool(self._values)

    def remember(self, replaced: Mapping[str, str]) -> None:
        """What was replaced before this run was cut off, by alias."""
        with self._lock:
            for alias, value in replaced.items():
                kind = self._reserve(alias)
                if value not in self._aliases and alias not in self._values:
                    self._aliases[value], self._values[alias] = alias, value
                    self._kinds[value] = kind

    def hide(self, text: str) -> str:
        """The text with aliases for all that is personal in it, or is known to be."""
        start, pieces = 0, []
        for span in self.find(text):
            pieces += [text[start : span.start], self._aliases[text[span.start : span.end]]]
            start = span.end
        return "".join([*pieces, text[start:]])

    def find(self, text: str) -> tuple[PiiSpan, ...]:
        """What is personal in it, in order; all of it has an alias from now on."""
        with self._lock:
            for alias in ALIAS.findall(text):
                self._reserve(alias)  # somebody wrote it, and means nobody's value
            spans = self._find_cached(text)
            self._assign_aliases(text, spans)
            if more := self._find_known(text, spans):
                spans = merge_spans([*spans, *more])
                self._assign_aliases(text, spans)
            return spans

    def hide_json(self, text: str) -> str:
        """The same for JSON, which it stays."""
        self.find(text)  # what a field is called says what is in it
        return map_json(text, self.hide)

    def hidden(self, messages: Sequence[Message]) -> list[Message]:
        """The messages as a model may read them; what it thought itself stays as it was."""
        return [self._hidden(message) for message in messages]

    def replaced(self, messages: Sequence[Message]) -> dict[str, str]:
        """The aliases in these messages, with what they stand for."""
        used = ALIAS.findall(json.dumps(list(messages), ensure_ascii=False))
        return {alias: self._values[alias] for alias in used if alias in self._values}

    def restore(self, text: str, start: int = 0) -> str:
        """The text, from there on, with the values put in."""
        pieces = []
        for match in WRITTEN_ALIAS.finditer(text, start) if self.has_aliases else ():
            pieces += [
                text[start : match.start()],
                self._values.get(_canonical_alias(match), match[0]),
            ]
            start = match.end()
        return "".join([*pieces, text[start:]])

    async def restore_stream(
        self, pieces: AsyncGenerator[Any, None]
    ) -> AsyncGenerator[Any, None]:
        """What a model says, as `ReActPlanner` hears it, with the values put in."""
        words = DeltaRestorer(self)
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    if isinstance(piece, PlanResult):
                        for rest in words.rest():
                            yield rest
                        yield self._restore_plan(piece)
                    elif said := words.feed(piece):
                        yield said
        except AgentError:
            # What waited to be shown belongs to what was said.
            for rest in words.rest():
                yield rest
            raise

    def _restore_plan(self, plan: PlanResult) -> PlanResult:
        calls = tuple(map(self._restore_call, plan.calls))
        turn = replace(
            plan.turn,
            content=self._answered(plan.turn.content),
            reasoning=self.restore(plan.turn.reasoning),
            tool_calls=tuple(map(self._restore_call, plan.turn.tool_calls)),
        )
        final = plan.final_answer
        return replace(
            plan,
            thought=self.restore(plan.thought),
            action_input=_map_leaves(plan.action_input, self._answered),
            final_answer=None if final is None else self._answered(final),
            calls=calls,
            turn=turn,
        )

    def _restore_call(self, call: ToolCall) -> ToolCall:
        return replace(call, arguments=self._answered(call.arguments))

    def _answered(self, text: str) -> str:
        """The text with the values put in; where it is JSON, fenced or not, it stays JSON."""
        if not self.has_aliases:
            return text
        if fenced := FENCED_TEXT.fullmatch(text):
            return f"{fenced[1]}{map_json(fenced[2], self.restore)}{fenced[3]}"
        return map_json(text, self.restore)

    def _hidden(self, message: Message) -> Message:
        hidden = dict(message)
        if isinstance(message.get("content"), str):
            hidden["content"] = self.hide(message["content"])
        if calls := message.get("tool_calls"):
            hidden["tool_calls"] = [self._hide_call(call) for call in calls]
        return hidden

    def _hide_call(self, call: dict[str, Any]) -> dict[str, Any]:
        function = call.get("function") or {}
        arguments = self.hide_json(function.get("arguments") or "{}")
        return {**call, "function": {**function, "arguments": arguments}}

    def _find_cached(self, text: str) -> tuple[PiiSpan, ...]:
        """A conversation is sent again at every turn, and looked through once."""
        if text not in self._found:
            self._found[text] = find(text)
            self._size += len(text)
            while self._size > MAX_CACHED_CHARS and len(self._found) > 1:
                oldest = next(iter(self._found))
                del self._found[oldest]
                self._size -= len(oldest)
        return self._found[text]

    def _assign_aliases(self, text: str, spans: Iterable[PiiSpan]) -> None:
        for span in spans:
            value = text[span.start : span.end]
            if value not in self._aliases:
                alias = self._aliases[value] = self._new_alias(span.kind)
                self._values[alias] = value
                self._kinds[value] = span.kind

    def _reserve(self, alias: str) -> PiiKind:
        """The numbers up to this one are taken."""
        kind, _, number = alias.strip("‹›").rpartition(" ")
        self._last[kind] = max(self._last[kind], int(number))
        return PiiKind(kind)

    def _new_alias(self, kind: PiiKind) -> str:
        self._last[kind.value] += 1
        return f"‹{kind.value} {self._last[kind.value]}›"

    def _find_known(self, text: str, spans: Sequence[PiiSpan]) -> list[PiiSpan]:
        """A number that was called an account once is one without its label too."""
        rest = _text_between(text, spans)
        known = [
            value for value in self._aliases if value in rest and _is_distinctive(value, text)
        ]
        if not known:
            return []
        values = "|".join(map(re.escape, sorted(known, key=len, reverse=True)))
        alone = re.finditer(rf"(?<![0-9A-Za-z])(?:{values})(?![0-9A-Za-z])", text)
        return [PiiSpan(kind=self._kinds[m[0]], start=m.start(), end=m.end()) for m in alone]


class StreamingRestorer:
    """Words that are still coming, with the values put in: half an alias is never shown."""

    def __init__(self, discretion: Pseudonymizer) -> None:
        self._discretion = discretion
        self._held = ""
        self._before = ""

    def feed(self, piece: str) -> str:
        """What can be shown by now and was not before."""
        self._held += piece
        text, start = self._before + self._held, len(self._before)
        begun = PARTIAL_ALIAS.search(text, start) if self._discretion.has_aliases else None
        return self._release(begun.start() - start if begun else len(self._held))

    def rest(self) -> str:
        """What was still waiting, once nothing more comes."""
        return self._release(len(self._held))

    def _release(self, until: int) -> str:
        shown, self._held = self._held[:until], self._held[until:]
        before, self._before = self._before, (self._before + shown)[-1:]
        return self._discretion.restore(before + shown, len(before))


class DeltaRestorer:
    """Pieces of thoughts and of an answer, each kind with the values put in."""

    def __init__(self, discretion: Pseudonymizer) -> None:
        self._discretion = discretion
        self._growing: dict[str, StreamingRestorer] = {}
        self._last: dict[str, Any] = {}

    def feed(self, piece: Any) -> Any:
        """The piece as it can be shown, if there is anything to show; others as they are."""
        if (kind := getattr(piece, "kind", None)) is None:
            return piece
        growing = self._growing.setdefault(kind, StreamingRestorer(self._discretion))
        self._last[kind] = piece
        text = growing.feed(piece.text)
        return replace(piece, text=text) if text else None

    def rest(self) -> list[Any]:
        held = {kind: growing.rest() for kind, growing in self._growing.items()}
        return [replace(self._last[kind], text=text) for kind, text in held.items() if text]


def _text_between(text: str, spans: Iterable[PiiSpan]) -> str:
    start, pieces = 0, []
    for span in spans:
        pieces.append(text[start : span.start])
        start = span.end
    return "\n".join([*pieces, text[start:]])


def _is_distinctive(value: str, text: str) -> bool:
    """What is short is hidden where it is called by its name, or stands for itself."""
    return len(value) >= MIN_VALUE_CHARS or value == text


def map_json(text: str, change: Callable[[str], str]) -> str:
    """The text changed; where it is JSON, each text in it, so that it stays JSON."""
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


# As models write aliases: in other marks or none, in capitals, with other gaps and digits.
GAP = r"[\s_‐‑–-]"
OPENING_MARKS, CLOSING_MARKS = "‹<«〈＜《", "›>»〉＞》"


def _letter_patterns(kind: PiiKind) -> list[str]:
    """How its name may be written, piece by piece."""
    if kind is PiiKind.EMAIL:
        return ["e", "-?", *"mail"]
    return [rf"{GAP}{{0,3}}" if letter == " " else letter for letter in kind.value]


def _name_pattern(kind: PiiKind) -> str:
    return "".join(_letter_patterns(kind))


def _prefix_pattern(kind: PiiKind) -> str:
    """The beginnings of an alias, from its first letter to its last mark."""
    parts = [
        *_letter_patterns(kind),
        rf"{GAP}{{0,3}}",
        r"\d{1,5}",
        r"\s{0,2}",
        f"[{CLOSING_MARKS}]",
    ]
    pattern = ""
    for part in reversed(parts):
        pattern = f"(?:{part}{pattern})?"
    return pattern


_KINDS = sorted(PiiKind, key=lambda kind: -len(kind.value))
WRITTEN_ALIAS = re.compile(
    rf"(?:(?P<open>[{OPENING_MARKS}])\s{{0,2}})?(?<![0-9A-Za-z_])"
    rf"(?:{'|'.join(f'(?P<{kind.name}>{_name_pattern(kind)})' for kind in _KINDS)})"
    rf"{GAP}{{0,3}}(?P<number>\d{{1,5}})(?![0-9A-Za-z_])"
    rf"(?(open)(?:\s{{0,2}}[{CLOSING_MARKS}])?|(?:\s{{0,2}}›)?)",
    re.I,
)
PARTIAL_ALIAS = re.compile(
    rf"(?:[{OPENING_MARKS}]\s{{0,2}}|(?<![0-9A-Za-z_])(?=[a-z]))"
    rf"(?:{'|'.join(_prefix_pattern(kind) for kind in _KINDS)})\Z",
    re.I,
)


def _canonical_alias(match: re.Match[str]) -> str:
    kind = next(kind for kind in _KINDS if match[kind.name])
    return f"‹{kind.value} {int(match['number'])}›"
