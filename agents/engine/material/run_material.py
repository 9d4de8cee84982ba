"""What the agents of one run have read, and the numbers of its passages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Self

from agents.engine.history_summary import is_summary

from .page_urls import page_key, pages_in
from .passages import Passage, parse_passages, recorded_passages

Data = Mapping[str, Any]


@dataclass(slots=True)
class RunMaterial:
    """Shared by all agents of a run, so that a number means one passage in all of it.

    `sources` are all passages by number; `citable` are those that a model was sent in this run,
    and `earlier` those in the history of the chat, with their text. `suspect_steps` returned
    text that looks like instructions. `pages` are the addresses that the user, a search or a
    web page named; what a model writes names none.
    """

    sources: dict[int, Passage] = field(default_factory=dict)
    citable: set[int] = field(default_factory=set)
    earlier: dict[int, str] = field(default_factory=dict)
    has_searched: bool = False
    has_untrusted: bool = False
    suspect_steps: list[int] = field(default_factory=list)
    pages: dict[str, str] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of_history(cls, messages: Sequence[Data]) -> Self:
        """Start with what earlier runs of the chat have read, as far as it is sent again."""
        material = cls()
        for message in messages:
            # Files, too: the user attached them, but others may have written them.
            if "untrusted" in message or "material" in message:
                material.has_untrusted = True
                material.suspect_steps += [0] if message.get("is_suspect") else []
            if message.get("role") == "user" and not is_summary(dict(message)):
                material.name_pages(str(message.get("content") or ""))
            if message.get("sources"):
                passages = parse_passages(str(message["content"]))
                texts = {passage.number: passage.text for passage in passages}
                for passage in recorded_passages(message["sources"]):
                    material._add(passage)
                    material.earlier[passage.number] = texts.get(passage.number, "")
        return material

    def number(self, passages: Sequence[Passage]) -> list[Passage]:
        """Give new passages the next numbers; known ones keep theirs."""
        numbered: list[Passage] = []
        for passage in passages:
            digest = sha256(passage.text.encode(errors="replace")).hexdigest()
            # The same for the same text at the same place.
            # Ids aren't masked for reviewers, and an address can have personal data.
            page = sha256(passage.url.encode()).hexdigest()[:16] if passage.url else ""
            source = passage.document or page or passage.name
            key = f"{source}:{passage.ordinal}:{digest[:12]}"
            numbered.append(
                replace(
                    passage,
                    id=key,
                    digest=digest,
                    score=round(passage.score, 4),
                    number=self._numbers.get(key) or max(self.sources, default=0) + 1,
                )
            )
            self._add(numbered[-1])
        return numbered

    def name_pages(self, text: str) -> None:
        """Remember the pages that a user's text names."""
        self.pages = pages_in(text) | self.pages

    def find_page(self, url: str) -> str:
        """Return this address as it was named, or an empty text.

        A model's way to write it could carry data.
        """
        key = page_key(url)
        return self.pages.get(key, "") if key else ""

    def record(self, response: Data) -> None:
        """Remember what a tool's result, as it is saved, adds to what was read."""
        if "sources" in response:
            self.has_searched = True
            for passage in recorded_passages(response["sources"]):
                self._add(passage)
                self.citable.add(passage.number)
        self.has_untrusted |= bool(response.get("is_untrusted"))
        if response.get("suspicion"):
            self.suspect_steps.append(response["step"])

    def _add(self, passage: Passage) -> None:
        self._numbers.setdefault(passage.id, passage.number)
        self.sources[passage.number] = passage
        for url in filter(None, (passage.url, *passage.links)):
            self.pages.setdefault(page_key(url), url)
