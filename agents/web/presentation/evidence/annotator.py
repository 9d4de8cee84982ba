"""Writes an answer's HTML with links to its sources."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from agents.engine.material import CITATION

from .figures import Figure, figures_in, half_width
from .source_index import SourceIndex
from .sources import EXCERPT_CHARS, Observation
from .text_blocks import Block, linkable_ranges, plain_text

Item = TypeVar("Item")
MAX_LINKS = 200
MAX_SENTENCES = 300
MAX_PLACES = 1_000  # citations and figures of the answer
SENTENCE_END = re.compile(r"(?<=[.!?])[)\]\"'”’]*\s+|(?<=[。！？])[」』）]*|\n+")
STATEMENT_TAGS = {"p", "li", "blockquote"}
UNSUPPORTED = '<span class="unsupported">'


class Link(NamedTuple):
    """What one link in an answer stands for: a place in a source."""

    source: Observation
    before: str = ""
    match: str = ""
    after: str = ""
    is_rounded: bool = False


class Annotator:
    """Writes blocks with links and marks."""

    def __init__(
        self, index: SourceIndex, base: str, is_cut: bool, documents: str = ""
    ) -> None:
        self.index = index
        self.base = base
        self.documents = documents
        self.is_complete = index.is_complete and not is_cut
        self.html: list[str] = []
        self.links: list[Link] = []
        self._sentences = 0
        self._places = 0
        self._link_numbers: dict[tuple[Any, ...], int] = {}

    def add(self, block: Block | str) -> None:
        if isinstance(block, str):
            self.html.append(block)
            return
        text = "".join(plain_text(kind, segment) for kind, segment in block.segments)
        if not text.strip():
            self.html += [segment for _, segment in block.segments]
            return
        linkable = linkable_ranges(block)
        spans: list[_Span] = []
        start = 0
        for end in [*(match.end() for match in SENTENCE_END.finditer(text)), len(text)]:
            sentence = text[start:end]
            if sentence.strip():
                links, has_other_figures = self._links(sentence, start, linkable)
                spans += links
                if not links and self._is_unsupported(sentence, has_other_figures, block):
                    spans.append(_Span(start, start + len(sentence.rstrip()), UNSUPPORTED))
            start = end
        self._write(block, spans)

    def _is_unsupported(self, sentence: str, has_figures: bool, block: Block) -> bool:
        self._sentences += 1
        is_statement = block.tag in STATEMENT_TAGS and not sentence.rstrip().endswith(
            ("?", "？", ":", "：")
        )
        if not is_statement or self._sentences > MAX_SENTENCES or not self.is_complete:
            return False
        return has_figures or not self.index.supports(sentence)

    def _links(
        self, sentence: str, start: int, linkable: Sequence[tuple[int, int]]
    ) -> tuple[list["_Span"], bool]:
        spans: list[_Span] = []
        cited_ranges: list[tuple[int, int]] = []
        for match in self._within_limit(CITATION.finditer(half_width(sentence))):
            cited_ranges.append(match.span())
            spans += [
                span
                for span in self._citations(match, sentence, start)
                if _is_within(span, linkable)
            ]
        has_others = False
        for figure in self._within_limit(figures_in(sentence)):
            is_cited = any(a <= figure.start < b for a, b in cited_ranges)
            span = _Span(start + figure.start, start + figure.end, "")
            if is_cited or not _is_within(span, linkable):
                continue
            tag = self._figure_tag(figure)
            if tag:
                spans.append(span._replace(open=tag))
            elif not figure.is_trivial:
                has_others = True
        return sorted(spans), has_others

    def _within_limit(self, items: Iterator[Item]) -> Iterator[Item]:
        """Yield places until the answer has too many of them."""
        for item in items:
            self._places += 1
            if self._places > MAX_PLACES:
                self.is_complete = False
                return
            yield item

    def _citations(self, match: re.Match[str], sentence: str, start: int) -> Iterator["_Span"]:
        numbers = list(re.finditer(r"\d+", match[match.lastgroup or 0]))
        offset = match.start(match.lastgroup or 0)
        for number in numbers:
            source_index = self.index.cited(int(number[0]), sentence)
            if source_index is None:
                continue
            tag = self._tag(Link(self.index.sources[source_index]), "evidence-cite")
            if tag is None:
                continue
            span = (offset + number.start(), offset + number.end())
            span = match.span() if len(numbers) == 1 else span
            yield _Span(start + span[0], start + span[1], tag)

    def _figure_tag(self, figure: Figure) -> str | None:
        hit = self.index.find(figure)
        if hit is None:
            return None
        (source_index, begin, end), is_rounded = hit
        source = self.index.sources[source_index]
        half = EXCERPT_CHARS // 2
        prefix = " ".join(source.text[max(0, begin - half) : begin].split("\n")).lstrip()
        suffix = " ".join(source.text[end : end + half].split("\n")).rstrip()
        link = Link(
            source,
            f"…{prefix}" if begin > half else prefix,
            source.text[begin:end],
            f"{suffix}…" if end + half < len(source.text) else suffix,
            is_rounded,
        )
        return self._tag(link, "evidence-figure")

    def _tag(self, link: Link, kind: str) -> str | None:
        if (number := self._link_numbers.get(link)) is None:
            if len(self.links) >= MAX_LINKS:
                return None
            self.links.append(link)
            number = self._link_numbers[link] = len(self.links)
        if self.documents and link.source.passage is not None and not link.match:
            href = f"{self.documents}{link.source.number}/"
            opens = f'href="{href}" data-document'
            return f'<a class="evidence {kind}" {opens} data-evidence="{number}">'
        href = f"{self.base}{link.source.step}"
        return f'<a class="evidence {kind}" href="{href}" data-evidence="{number}">'

    def _write(self, block: Block, spans: list["_Span"]) -> None:
        offset = 0
        for kind, segment in block.segments:
            if kind == "tag":
                self.html.append(segment)
                offset += len(plain_text(kind, segment))
                continue
            end = offset + len(segment)
            position = offset
            for span in spans if kind == "text" else ():
                span_start = max(span.start, position)
                span_end = min(span.end, end)
                if span_start >= span_end:
                    continue
                close = "</a>" if span.open.startswith("<a") else "</span>"
                self.html += [segment[position - offset : span_start - offset], span.open]
                self.html += [segment[span_start - offset : span_end - offset], close]
                position = span_end
            self.html.append(segment[position - offset :])
            offset = end


class _Span(NamedTuple):
    start: int
    end: int
    open: str


def _is_within(span: _Span, ranges: Sequence[tuple[int, int]]) -> bool:
    """Whether it lies in one segment: a link can't cross other tags."""
    return any(start <= span.start and span.end <= end for start, end in ranges)
