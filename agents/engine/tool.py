"""Tools: what a model can call, and how it is described to it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from .errors import DuplicateToolError, ToolNotFoundError
from .material.passages import Passage
from .sentences import Sentence as _
from .sentences import as_error

ToolInput = str | Mapping[str, Any]
Effect = Literal["read", "idempotent", "at_most_once"]

# Types that models and browsers display safely. An SVG is a document that can run scripts.
IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
AUDIO_TYPES = frozenset({"audio/wav", "audio/mpeg", "audio/ogg", "audio/flac"})

TEXT_INPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """An image, a sound or a file in a tool's result, besides its text."""

    data: bytes
    mime_type: str
    name: str = ""

    @property
    def kind(self) -> Literal["image", "audio", "file"]:
        if self.mime_type in IMAGE_TYPES:
            return "image"
        return "audio" if self.mime_type in AUDIO_TYPES else "file"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A tool's output or error.

    `mendable` errors come from the input: a retry is useless, but the model can correct it. A
    `note` is about the output, e.g. that it is rounded, and isn't part of it. `is_data` means
    that the output is JSON: plan steps read it as a value, so 6 is a number. `is_late` means
    that the tool gave up waiting, so how far the call got is unknown. `sources` are the
    numbered passages in the output of a search; None means that it is no search. `max_age` is
    how many seconds its origin calls it fresh (None: it doesn't say), and `is_private` that it
    is for one person only.
    """

    output: str = ""
    error: str | None = None
    mendable: bool = False
    note: str = ""
    is_data: bool = False
    is_late: bool = False
    attachments: tuple[Attachment, ...] = ()
    sources: tuple[Passage, ...] | None = None
    max_age: float | None = None
    is_private: bool = False

    @property
    def is_error(self) -> bool:
        return self.error is not None

    @property
    def text(self) -> str:
        """The text the model reads."""
        if self.error is not None:
            return as_error(self.error)
        return f"{self.output} ({self.note})" if self.note else self.output


@runtime_checkable
class Tool(Protocol):
    """Anything with a name, a description and `execute`.

    A tool can also have `parameters` (the JSON schema of its input), `effect` (of repeating a
    call), `timeout` (seconds), `is_untrusted` (it returns text from outside, which a model
    must not obey), `needs_approval` (a person must approve each call), `sends_outside` (a model
    decides what it sends to the web) and `reaches` (where its calls go, which an approval is
    bound to). An `is_internal` tool only searches definitions of
    tools, so its calls never need approval.

    If it fails: `max_retries` (None: the runtime's), `fallback_tool` (the name of the tool that
    is called instead) and `prefers_fallback` (why that one is called first, if it is).
    """

    name: str
    description: str

    async def execute(self, input: ToolInput, /) -> ToolResult: ...


class ToolRegistry:
    """Tools by name; `withheld` says why a tool that an agent has can't be used.

    `unsent` tools can be called, but the model isn't sent their definitions.
    """

    def __init__(
        self,
        tools: Iterable[Tool] = (),
        withheld: Mapping[str, str] | None = None,
        unsent: Iterable[str] = (),
    ) -> None:
        self._tools: dict[str, Tool] = {}
        self.withheld = dict(withheld or {})
        self.unsent = frozenset(unsent)
        for tool in tools:
            self.register(tool)

    def register(self, tool: Tool) -> None:
        if tool.name in self._tools:
            raise DuplicateToolError(
                _("A tool named %(name)s already exists.", name=repr(tool.name))
            )
        self._tools[tool.name] = tool

    def get(self, name: str) -> Tool:
        try:
            return self._tools[name]
        except KeyError:
            if name in self.withheld:
                raise ToolNotFoundError(self.withheld[name]) from None
            names = ", ".join(self.list_tools()) or "none"
            raise ToolNotFoundError(
                _(
                    "There is no tool named %(name)s. Available tools: %(names)s.",
                    name=repr(name),
                    names=names,
                )
            ) from None

    def has(self, name: str) -> bool:
        return name in self._tools

    def list_tools(self) -> list[str]:
        return sorted(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        return (self._tools[name] for name in self.list_tools())


def timeout_message(name: str, seconds: float) -> str:
    return _("%(name)s didn't respond within %(seconds)s s.", name=name, seconds=f"{seconds:g}")


def uncertain_message(sentence: str) -> str:
    """Add to a failure that a call with side effects may have had them."""
    return _("%(sentence)s It may or may not have completed.", sentence=sentence)


def specification(tool: Tool) -> dict[str, Any]:
    """Return the tool's description for a model."""
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": getattr(tool, "parameters", TEXT_INPUT_SCHEMA),
        },
    }


def text_argument(input: ToolInput, name: str) -> str:
    """Return the one text argument of a simple tool, in any notation."""
    if isinstance(input, str):
        return input
    value = input.get(name, input.get("input", ""))
    return value if isinstance(value, str) else str(value)
