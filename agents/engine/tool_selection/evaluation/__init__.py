"""Measures tool selection: how often the right tool is among those that are sent.

The set in this folder has tools of invented servers, and questions in English and Japanese that
use other words than the tools. The lexicon and the weights were chosen with `questions.txt`;
`held_out.txt` was written afterwards and has never changed them.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.engine.tool import ToolInput, ToolResult

from ..index import SEPARATOR

OWN_SET = Path(__file__).parent
LANGUAGES = ("en", "ja")
_TOOL = re.compile(r"(?P<name>\w+)\((?P<arguments>[^)]*)\): (?P<description>.+)")


class BadSet(ValueError):
    """Raised with a sentence when a set can't be read."""


@dataclass(kw_only=True)
class DescribedTool:
    """A tool of the set; it does nothing."""

    name: str
    description: str
    parameters: dict[str, Any]
    effect: str = "read"

    async def execute(self, input: ToolInput, /) -> ToolResult:
        return ToolResult(f"{self.name} did nothing.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question and the tools of which any is right."""

    language: str
    text: str
    tools: tuple[str, ...]
    is_held_out: bool


def read_tools(path: Path = OWN_SET / "tools.txt") -> list[DescribedTool]:
    """Read the tools of a file: [server], then a line for each tool."""
    server = ""
    tools = list[DescribedTool]()
    for number, line in _lines(path):
        if line.startswith("["):
            server = line.strip("[]")
            continue
        match = _TOOL.fullmatch(line)
        if match is None:
            raise BadSet(f"Line {number} of {path} isn't a tool.")
        arguments = [name.strip() for name in match["arguments"].split(",") if name.strip()]
        tools.append(
            DescribedTool(
                name=f"{server}{SEPARATOR}{match['name']}",
                description=match["description"],
                parameters={
                    "type": "object",
                    "properties": {name.rstrip("?"): {"type": "string"} for name in arguments},
                    "required": [name for name in arguments if not name.endswith("?")],
                },
            )
        )
    return tools


def read_questions(folder: Path = OWN_SET) -> list[Question]:
    """Read the questions of a folder: those for tuning, then those held out."""
    return [
        *_questions(folder / "questions.txt", is_held_out=False),
        *_questions(folder / "held_out.txt", is_held_out=True),
    ]


def _questions(path: Path, *, is_held_out: bool) -> Iterator[Question]:
    for number, line in _lines(path):
        columns = [column.strip() for column in line.split("|", 2)]
        if len(columns) != 3:
            raise BadSet(f"Line {number} of {path} isn't a question.")
        language, tool_names, text = columns
        tools = tuple(name.strip() for name in tool_names.split(","))
        yield Question(language=language, text=text, tools=tools, is_held_out=is_held_out)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadSet(f"Can't read {str(path)!r}: {error.strerror}.") from error
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            yield number, line.strip()


def rank(question: Question, names: Sequence[str]) -> int | None:
    """Return the rank of the first right tool, from 1; None if there is none."""
    ranks = (position for position, name in enumerate(names, 1) if name in question.tools)
    return next(ranks, None)
