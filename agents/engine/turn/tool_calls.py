"""Assembles fragments of tool calls.

Providers agree on the field names and little else. `ToolCallAssembler._find_call` decides which
call a fragment belongs to, by rules that hold for every format we have seen.
"""

import json
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

from agents.engine.json_text import is_json, repaired_object
from agents.engine.state import replace_surrogates

from ..sentences import Sentence as _
from .json_shapes import MAPPING_TYPES, as_list, text_or_empty
from .reasoning import provider_call_fields

MAX_ID_CHARS = 100  # some contain a signature of thousands of characters
MAX_NAME_CHARS = 64
_INVALID_NAME_CHARS = re.compile(r"[^\w-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool call; `arguments` is JSON text, or as received if that can't be repaired.

    `kept` is what its provider expects back with the call, such as a signature.
    """

    id: str
    name: str
    arguments: str = "{}"
    kept: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def input(self) -> dict[str, Any]:
        """The arguments as data; raises ValueError unless they are a JSON object."""
        try:
            value = json.loads(self.arguments)
            if isinstance(value, str):  # some providers send JSON as a JSON string
                value = json.loads(value or "{}")
        except RecursionError:
            raise ValueError(_("the arguments are nested too deeply")) from None
        if value is None or value == []:  # others send this for no arguments
            return {}
        if not isinstance(value, dict):
            raise ValueError(
                _("expected an object, found %(found)s", found=repr(self.arguments))
            )
        return value

    @property
    def readable(self) -> dict[str, Any] | str:
        """The arguments as data, or as text if they aren't valid."""
        try:
            return self.input
        except ValueError:
            return self.arguments

    def wire(self) -> dict[str, Any]:
        """Return the call for the history; unreadable arguments would break later requests."""
        name = _INVALID_NAME_CHARS.sub("_", self.name)[:MAX_NAME_CHARS] or "unknown"
        try:
            text = json.dumps(self.input, ensure_ascii=False, allow_nan=False)
            arguments = replace_surrogates(text)
        except ValueError:
            arguments = "{}"
        function = {"name": name, "arguments": arguments}
        return {"id": self.id, "type": "function", "function": function, **self.kept}


class ToolCallAssembler:
    """The calls of a turn, in the order in which they began."""

    def __init__(self) -> None:
        self.size = 0
        self._all: list[_PartialCall] = []
        self._ids: dict[str, _PartialCall] = {}
        self._slots: dict[int | str, _PartialCall] = {}

    def feed(self, delta: Mapping[str, Any]) -> None:
        calls = delta.get("tool_calls") or ()
        for position, fragment in enumerate(as_list(calls)):
            if isinstance(fragment, MAPPING_TYPES):
                self._add_fragment(_Fragment.of(fragment, position))
        if not calls and isinstance(function := delta.get("function_call"), MAPPING_TYPES):
            self._add_fragment(
                _Fragment.of({"index": "function_call", "function": function}, 0)
            )

    def whole(self, reply_id: str) -> tuple[ToolCall, ...]:
        """Return all calls, each with a unique id."""
        calls: dict[str, ToolCall] = {}
        for call in self._all:
            if call.has_content:
                tool_call = call.whole(f"{reply_id} {len(calls)}", used_ids=calls)
                calls[tool_call.id] = tool_call
        return tuple(calls.values())

    def _add_fragment(self, fragment: "_Fragment") -> None:
        self.size += len(fragment.name) + len(fragment.arguments)
        call = self._find_call(fragment)
        is_new = call is None or not call.is_continued_by(fragment)
        if call is None or is_new:
            call = _PartialCall(is_echo=call is not None and call.is_echoed_by(fragment))
            self._all.append(call)
        if is_new or fragment.is_placed:
            self._slots[fragment.slot] = call
        if fragment.id:
            self._ids[fragment.id] = call
        call.take(fragment)

    def _find_call(self, fragment: "_Fragment") -> "_PartialCall | None":
        """Return the call that a fragment continues, unless it starts another in its place."""
        call = self._slots.get(fragment.slot)
        if fragment.id and not (call and call.id == fragment.id):
            call = self._ids.get(fragment.id, call)
        if fragment.is_bare and self._all and (call is None or call.is_complete):
            return self._all[-1]
        return call


class _Fragment(NamedTuple):
    """A fragment of a call. Without an index, its position in the array is used."""

    id: str
    name: str
    arguments: str
    slot: int | str
    is_placed: bool
    kept: Mapping[str, Any]

    @classmethod
    def of(cls, fragment: Mapping[str, Any], position: int) -> "_Fragment":
        function = fragment.get("function")
        if not isinstance(function, MAPPING_TYPES):
            function = fragment
        index = fragment.get("index")
        if not isinstance(index, int | str):
            index = function.get("index")
        slot: int | str = position
        is_placed = isinstance(index, int | str)
        if isinstance(index, int | str):
            is_number = isinstance(index, str) and index.isdecimal()
            slot = int(index) if is_number else index
        arguments = function.get("arguments")
        if not isinstance(arguments, str):
            arguments = "" if arguments is None else json.dumps(arguments, ensure_ascii=False)
        return cls(
            id=text_or_empty(fragment.get("id")),
            name=text_or_empty(function.get("name")),
            arguments=arguments,
            slot=slot,
            is_placed=is_placed,
            kept=provider_call_fields(function, fragment),
        )

    @property
    def is_bare(self) -> bool:
        return not (self.id or self.name or self.is_placed)


class _PartialCall:
    """A call under construction."""

    def __init__(self, *, is_echo: bool = False) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.kept: dict[str, Any] = {}
        self._is_echo = is_echo
        self._brackets = _BracketTracker()
        self._followed = 0
        self._is_broken = False

    @property
    def has_content(self) -> bool:
        return bool(self.arguments or (self.name and not self._is_echo))

    def is_continued_by(self, fragment: _Fragment) -> bool:
        """Whether the fragment continues this call rather than starting another.

        A name after complete arguments starts another call, and so does a new id, except with
        providers that make up an id for every fragment.
        """
        is_same = fragment.name == self.name
        if fragment.id and fragment.id == self.id:
            if not fragment.name or not self.is_complete:
                return True
            arguments = fragment.arguments.strip()
            is_repeated = not fragment.arguments or arguments == "".join(self.arguments).strip()
            return is_same and is_repeated
        if fragment.id and self.id and fragment.name and not self.arguments:
            return False
        if fragment.id and self.id:
            return (is_same or not fragment.name) and not self.is_complete
        if not fragment.name:
            return True
        return not self.is_complete and (is_same or not (fragment.id or self.arguments))

    def is_echoed_by(self, fragment: _Fragment) -> bool:
        """Whether the fragment only repeats the name, if no arguments follow."""
        return fragment.name == self.name and not (fragment.id or fragment.arguments)

    @property
    def is_complete(self) -> bool:
        """Whether the arguments so far are complete JSON.

        Some providers repeat the name in every fragment, so this is checked every time: no
        fragment is scanned twice, and closed but invalid text isn't decoded again.
        """
        for arguments in self.arguments[self._followed :]:
            self._brackets.follow(arguments)
        self._followed = len(self.arguments)
        if self._is_broken or not self._brackets.are_closed:
            return False
        self._is_broken = not is_json("".join(self.arguments))
        return not self._is_broken

    def take(self, fragment: _Fragment) -> None:
        self.id = self.id or fragment.id
        # A name is sent once, repeated, growing, or in fragments.
        if fragment.name.startswith(self.name):
            self.name = fragment.name
        elif not self.arguments:
            self.name += fragment.name
        self.kept |= fragment.kept
        is_repeated = fragment.id and fragment.name and self.is_complete
        if fragment.arguments and not is_repeated:
            self.arguments.append(fragment.arguments)

    def whole(self, seed: str, used_ids: Container[str]) -> ToolCall:
        arguments = "".join(self.arguments).strip() or "{}"
        id = self.id
        if not id or id in used_ids or len(id) > MAX_ID_CHARS:
            # Nine letters or digits suit every provider.
            content = f"{seed} {self.name} {arguments}"
            id = blake2b(content.encode(errors="replace")).hexdigest()[:9]
        if not is_json(arguments):
            arguments = repaired_object(arguments)
        return ToolCall(id=id, name=self.name.strip(), arguments=arguments, kept=self.kept)


class _BracketTracker:
    """Tracks brackets in growing JSON text, to know when decoding is worthwhile."""

    def __init__(self) -> None:
        self.are_closed = False
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def follow(self, text: str) -> None:
        for char in text:
            if self._escaped:
                self._escaped = False
            elif self._in_string:
                self._escaped = char == "\\"
                self._in_string = char != '"'
            elif char == '"':
                self._in_string = True
            elif char in "{[":
                self._depth += 1
                self.are_closed = False
            elif char in "}]":
                self._depth -= 1
                self.are_closed = self._depth == 0
