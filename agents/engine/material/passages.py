"""A passage of a document: found by a search, read by a model and cited in an answer."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PureWindowsPath
from typing import Any, Self

PASSAGE_HEAD = re.compile(r"^\[(\d{1,3})\] (.+)$", re.MULTILINE)
# A line of a passage that looks like the head of another one.
FORGED_HEAD = re.compile(r"^\[(?=\d{1,3}\] )", re.MULTILINE)
# How a model reads a place; labels for people are translated.
PLACES = {
    "page": "p. {}",
    "slide": "slide {}",
    "sheet": "sheet {}",
    "chapter": "ch. {}",
    "clip": "clip {}",
}
SAVED_FIELDS = (
    "id",
    "title",
    "document",
    "chunk",
    "heading",
    "kind",
    "part",
    "label",
    "owner",
    "digest",
    "score",
    "number",
)
# Saved only if a passage has them: those of documents don't.
WEB_FIELDS = ("url", "published", "links")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A passage, its position, and what speaks for it.

    A run gives it its `number`, its `id`, which is the same whenever the passage is found, and
    the `digest` of the text that the model read, so that an old answer keeps its evidence if
    the document changes. These and its place are saved; its text is in the result of the tool.
    """

    title: str  # of its document
    heading: str = ""
    text: str = ""
    path: str = ""  # as ingested; only for commands, because it can be the server's
    ordinal: int = 0  # in the document
    last_ordinal: int = 0  # if it was joined with those after it
    part: int = 1  # number of the document's part: its page, slide or sheet
    kind: str = ""  # of the part
    label: str = ""
    document: int | None = None
    chunk: int | None = None
    collection: int = 0
    owner: int | None = None  # the user whose collection it is in, if it is a user's
    meaning: float = 0.0  # cosine
    words: float = 0.0  # share of the question's words, rare ones counting more
    exact: float = 0.0  # share of its identifiers, figures and quotations
    score: float = 0.0
    number: int = 0
    id: str = ""
    digest: str = ""
    url: str = ""  # of a web page
    published: str = ""  # when, as a search service says it
    links: tuple[str, ...] = ()  # of the page, which can be read, too

    @property
    def name(self) -> str:
        """The file's name without its folder."""
        return PureWindowsPath(self.path).name or self.path

    @property
    def place(self) -> str:
        """The page, slide or sheet, as a model reads it."""
        if self.kind == "sheet" and self.label:
            return f"sheet “{self.label}”"
        return PLACES[self.kind].format(self.part) if self.kind in PLACES else ""

    @property
    def citation(self) -> str:
        path = " › ".join(filter(None, (self.title, self.heading)))
        source = self.url or f"{self.name} #{self.ordinal}"
        position = ", ".join(filter(None, (source, self.place, self.published)))
        return f"{path} ({position})"

    def to_dict(self) -> dict[str, Any]:
        """Return what is saved with the run."""
        fields = {name: getattr(self, name) for name in SAVED_FIELDS}
        web_fields = {name: getattr(self, name) for name in WEB_FIELDS if getattr(self, name)}
        return {**fields, **web_fields}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return a saved passage, with its text if that was saved, too."""
        names = (*SAVED_FIELDS, *WEB_FIELDS, "text")
        values = {name: data[name] for name in names if name in data}
        return cls(**values | {"links": tuple(values.get("links", ()))})


def format_passages(passages: Sequence[Passage]) -> str:
    """Format passages for a model, numbered so that it can cite them."""
    return "\n\n".join(
        f"[{passage.number or position}] {' '.join(passage.citation.split())}\n"
        # A space, so that a line of the text can't pass for another source.
        f"{FORGED_HEAD.sub(' [', passage.text.strip())}"
        for position, passage in enumerate(passages, start=1)
    )


def parse_passages(text: str) -> list[Passage]:
    """Return the numbered passages in a search result; their titles are whole citations."""
    heads = list(PASSAGE_HEAD.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    return [
        Passage(number=int(head[1]), title=head[2].strip(), text=text[head.end() : end].strip())
        for head, end in zip(heads, ends, strict=False)
    ]


def recorded_passages(values: Any) -> list[Passage]:
    """Return the passages in saved data; what isn't one is left out."""
    return [
        Passage.from_dict(value)
        for value in (values if isinstance(values, list) else ())
        if isinstance(value, dict) and isinstance(value.get("number"), int) and "title" in value
    ]
