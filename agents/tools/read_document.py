"""Reads on in a document that a search has found."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from agents.engine import call_context
from agents.engine.material import Passage, format_passages
from agents.engine.sentences import Sentence as _
from agents.engine.tool import ToolInput, ToolResult

from .search import SearchResult

MAX_READ_CHARS = 12_000
MAX_PASSAGES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """Where to read: around a passage, or in a document by its title, in these parts."""

    source: Passage | None = None
    title: str = ""
    first_part: int | None = None
    last_part: int | None = None


class Reader(Protocol):
    async def read(self, request: ReadRequest) -> SearchResult: ...


class ReadDocumentTool:
    name = "read_document"
    description: str = _(
        "Reads more of a document: the text around a passage that a search returned, or pages "
        "of a document. Use it when a passage isn't enough. The passages it returns have "
        "numbers to cite, too."
    )
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "source": {
                "type": "integer",
                "description": "Number of a passage, e.g. 3: reads the text around it.",
            },
            "document": {
                "type": "string",
                "description": "Title of a document, if you have no passage of it.",
            },
            "first_part": {
                "type": "integer",
                "description": "First page, slide or sheet to read.",
            },
            "last_part": {
                "type": "integer",
                "description": "Last page, slide or sheet to read.",
            },
        },
    }
    effect = "read"
    is_untrusted = True

    def __init__(self, library: Reader | None = None) -> None:
        self.library = library

    async def execute(self, input: ToolInput, /) -> ToolResult:
        if self.library is None:
            return ToolResult(error=_("There are no documents to read."), mendable=True)
        context = call_context.current()
        arguments = {"document": input} if isinstance(input, str) else input
        number = _number(arguments, "source")
        title = str(arguments.get("document") or "").strip()
        source = context.find_source(number) if number is not None else None
        if number is not None and source is None and not title:
            return ToolResult(
                error=_(
                    "No search has returned a passage with the number %(number)s. "
                    "Search first.",
                    number=number,
                ),
                mendable=True,
            )
        if source is None and not title:
            return ToolResult(error=_("Enter a passage's number or a title."), mendable=True)
        request = ReadRequest(
            source=source,
            title=title,
            first_part=_number(arguments, "first_part"),
            last_part=_number(arguments, "last_part"),
        )
        result = await self.library.read(request)
        if result.problem:
            return ToolResult(error=result.problem, mendable=True)
        passages = context.number_sources(result.passages)
        return ToolResult(format_passages(passages), sources=tuple(passages))


def _number(arguments: Mapping[str, Any], name: str) -> int | None:
    try:
        return int(str(arguments.get(name)).strip(" []"))
    except ValueError:
        return None
