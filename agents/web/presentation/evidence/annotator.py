"""Writes an answer's HTML with citations of its sources, and marks what has none."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from django.utils.html import escape
from django.utils.translation import gettext as _

from agents.engine.material import CITATION
from agents.engine.material.figures import Computation, Operand, half_width

from .source_index import SourceIndex
from .sources import EXCERPT_CHARS, Observation
from .statements import (
    Chain,
    FoundFigure,
    Key,
    Range,
    Statement,
    StatementReader,
    Surroundings,
    sentences,
)
from .text_blocks import Block, boundary_after, linkable_ranges, plain_text

MAX_LINKS = 200
MAX_SENTENCES = 300
PUNCTUATION = re.compile(r"[.,;:!?)\"'”’。、！？：；）」』…]*")
OPENING_BRACKETS = "([（［「"
STATEMENT_TAGS = {"p", "li", "blockquote"}
HEADING_TAGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
MAX_AROUND_CHARS = 400
CELL = "td"
UNSUPPORTED = '<span class="unsupported">'
COMPUTED = '<a class="computed" {} data-evidence="{}">'
CITED_CELL = '<td class="cited-cell">'
CITED_HEADING = '<th class="cited-cell"><span class="visually-hidden">{}</span></th>'


class Link(NamedTuple):
    """What one citation stands for: a source, or a place in it."""

    source: Observation
    before: str = ""
    match: str = ""
    after: str = ""
    is_rounded: bool = False
    computation: Computation | None = None
    result: str = ""  # of the computation, as the answer has it


class NumberedSource(NamedTuple):
    """A source of an answer, with the number of its citations."""

    number: int
    source: Observation


class _Citation(NamedTuple):
    source: Observation
    link: int  # which of the links, from 1
    number: int = 0  # as the model cited it


class _Edit(NamedTuple):
    """A change of a block's text: a citation at a place, a mark around a part, or a cut."""

    start: int
    end: int
    change: str | _Citation = ""


@dataclass(slots=True)
class _Row:
    is_head: bool = False
    end: int = 0  # which piece ends it
    citations: list[_Citation] = field(default_factory=list)
    figures: list[dict[Key, FoundFigure]] = field(default_factory=list)
    keys: set[Key] = field(default_factory=set)  # sources that its cells cite
    cells: int = 0  # so far
    words: list[str] = field(default_factory=list)  # of its cells
    operands: list[Operand] = field(default_factory=list)


class Annotator:
    """Writes blocks with citations and marks."""

    def __init__(
        self,
        index: SourceIndex,
        base: str,
        is_cut: bool,
        documents: str = "",
        counts: frozenset[int] = frozenset(),  # items of its lists, rows of its tables
    ) -> None:
        self.index = index
        self.base = base
        self.documents = documents
        self.links: list[Link] = []
        self._reader = StatementReader(index, counts)
        self._is_comparable = index.is_complete and not is_cut
        self._pieces: list[str | _Citation] = []
        self._rows: list[_Row] = []  # of the table it is in
        self._sentences = 0
        self._link_numbers: dict[Link, int] = {}
        self._heading = ""
        self._previous = ""  # the block before

    @property
    def is_complete(self) -> bool:
        """Whether everything could be compared so far."""
        return self._is_comparable and not self._reader.is_full

    def add(self, piece: Block | str) -> None:
        if isinstance(piece, str):
            self._add_tag(piece)
            return
        text = half_width("".join([plain_text(*segment) for segment in piece.segments]))
        if not text or text.isspace():
            self._pieces += [segment for _, segment in piece.segments]
            return
        ranges = linkable_ranges(piece)
        edits: list[_Edit] = []
        if piece.tag == CELL and self._rows:
            edits = self._cell_edits(text, ranges)
        elif piece.tag == "th" and self._rows:
            self._rows[-1].words.append(text.strip())
        else:
            if piece.tag in HEADING_TAGS:
                self._heading = text.strip()[:MAX_AROUND_CHARS]
            for start, end in sentences(text):
                if text[start:end].strip():
                    edits += self._sentence_edits(text, start, end, ranges, piece.tag)
            self._previous = text[-MAX_AROUND_CHARS:]
        self._write(piece, edits)

    def finish(self) -> tuple[str, list[NumberedSource]]:
        """Return the HTML, and the sources by number.

        A source that the model cited keeps the model's number: follow-up questions name it.
        """
        citations = [piece for piece in self._pieces if isinstance(piece, _Citation)]
        numbers: dict[Key, int] = {}
        sources: dict[int, Observation] = {}
        for citation in citations:
            is_new = citation.source.key not in numbers and citation.number not in sources
            if citation.number and is_new:
                numbers[citation.source.key] = citation.number
                sources[citation.number] = citation.source
        free_numbers = (number for number in count(1) if number not in sources)
        for citation in citations:
            if citation.source.key not in numbers:
                number = next(free_numbers)
                numbers[citation.source.key] = number
                sources[number] = citation.source
        rendered = {
            link: self._render(source, link, numbers[source.key])
            for link, (source, *_place) in enumerate(self.links, start=1)
            if source.key in numbers
        }
        html = "".join(
            [
                piece if isinstance(piece, str) else rendered[piece.link]
                for piece in self._pieces
            ]
        )
        return html, [NumberedSource(number, sources[number]) for number in sorted(sources)]

    def _add_tag(self, tag: str) -> None:
        if tag == "<tr>":
            self._rows.append(_Row())
        elif tag.startswith(("<th>", "<th ")):
            self._rows[-1].is_head = True
        elif tag == "</tr>" and self._rows:
            row = self._rows[-1]
            row.citations += self._figure_citations(row.figures, row.keys)
            row.end = len(self._pieces)
        elif tag == "</table>":
            self._cite_rows()
        self._pieces.append(tag)

    def _cite_rows(self) -> None:
        """Add a column with the citations of the rows, if they have any."""
        if any(row.citations for row in self._rows):
            for row in reversed(self._rows):
                cell: list[str | _Citation]
                if row.is_head:
                    cell = [CITED_HEADING.format(escape(_("Sources")))]
                else:
                    cell = [CITED_CELL, *row.citations, "</td>"]
                self._pieces[row.end : row.end] = cell
        self._rows = []

    def _cell_edits(self, text: str, ranges: Sequence[Range]) -> list[_Edit]:
        """Leave the citations of a cell to the end of its row, unless it has nothing else."""
        row = self._rows[-1]
        heads = self._rows[0].words if self._rows[0].is_head else []
        head = heads[row.cells] if row.cells < len(heads) else ""
        words = " ".join([self._heading, head, *row.words])[:MAX_AROUND_CHARS]
        surroundings = Surroundings(words, row.operands, head)
        statement = self._reader.read(text, 0, len(text), ranges, surroundings)
        row.cells += 1
        row.words.append(text.strip())
        row.operands += statement.operands
        is_reference = not CITATION.sub("", text).strip()
        edits: list[_Edit] = []
        for chain in statement.chains:
            citations = self._chain_citations(chain, statement)
            if citations:
                edits.append(_Edit(chain.start, chain.end))
            if is_reference:
                edits += (_Edit(chain.end, chain.end, citation) for citation in citations)
            else:
                row.citations += [c for c in citations if c.source.key not in row.keys]
            row.keys |= _keys(citations)
        row.figures += statement.figures
        edits += self._computed_edits(statement)
        if self.is_complete:
            edits += (_Edit(*span, UNSUPPORTED) for span in statement.unsourced)
        return sorted(edits, key=_position)

    def _sentence_edits(
        self, text: str, start: int, end: int, ranges: Sequence[Range], tag: str
    ) -> list[_Edit]:
        sentence = text[start:end]
        written_end = start + len(sentence.rstrip())
        words = " ".join([self._heading, self._previous, text[:MAX_AROUND_CHARS]])
        surroundings = Surroundings(words, has_names=tag in STATEMENT_TAGS)
        statement = self._reader.read(text, start, end, ranges, surroundings)
        edits: list[_Edit] = []
        keys: set[Key] = set()
        for chain in statement.chains:
            citations = self._chain_citations(chain, statement)
            if not citations:
                continue
            keys |= _keys(citations)
            edits.append(_Edit(chain.start, chain.end))
            position = chain.end
            if chain.start == start or text[chain.start - 1] not in OPENING_BRACKETS:
                following = PUNCTUATION.match(text, chain.end, written_end)
                position = following.end() if following else position
            edits += (_Edit(position, position, citation) for citation in citations)
        found = self._figure_citations(statement.figures, keys)
        edits += (_Edit(written_end, written_end, citation) for citation in found)
        if tag in STATEMENT_TAGS | HEADING_TAGS and self._can_mark(sentence):
            is_statement = tag in STATEMENT_TAGS and not sentence.rstrip().endswith((":", "："))
            is_checked = is_statement and not edits and not statement.has_figures
            if is_checked and not self.index.supports(sentence):
                edits.append(_Edit(start, written_end, UNSUPPORTED))
            else:
                edits += (_Edit(*span, UNSUPPORTED) for span in statement.unsourced)
        edits += self._computed_edits(statement)
        return sorted(edits, key=_position)

    def _computed_edits(self, statement: Statement) -> list[_Edit]:
        """Have computed figures say how they follow from the results."""
        edits = []
        for span, found in statement.computed:
            citation = self._citation(self._link(found))
            if citation is not None:
                opening = COMPUTED.format(self._target(citation.source), citation.link)
                edits.append(_Edit(*span, opening))
        return edits

    def _can_mark(self, sentence: str) -> bool:
        self._sentences += 1
        is_question = sentence.rstrip().endswith(("?", "？"))
        return not is_question and self._sentences <= MAX_SENTENCES and self.is_complete

    def _chain_citations(self, chain: Chain, statement: Statement) -> list[_Citation]:
        citations = []
        for key, (number, source) in chain.sources.items():
            link = Link(source)
            if source.passage is None:  # where exactly a result has the figure
                places = [figure[key] for figure in statement.figures if key in figure]
                link = self._link(places[0]) if places else link
            citations.append(self._citation(link, number))
        return [citation for citation in citations if citation is not None]

    def _figure_citations(
        self, figures: Sequence[dict[Key, FoundFigure]], keys: Set[Key]
    ) -> list[_Citation]:
        """Cite as few sources as have all figures, beside those that are cited already."""
        counts = Counter(key for figure in figures for key in figure)
        found: dict[Key, _Citation | None] = {}
        for figure in figures:
            if keys.isdisjoint(figure) and found.keys().isdisjoint(figure):
                key = max(figure, key=counts.__getitem__)
                found[key] = self._citation(self._link(figure[key]))
        return [citation for citation in found.values() if citation is not None]

    def _link(self, found: FoundFigure) -> Link:
        (source_index, begin, end), is_rounded, computation, result = found
        source = self.index.figure_sources[source_index]
        half = EXCERPT_CHARS // 2
        prefix = " ".join(source.text[max(0, begin - half) : begin].split("\n")).lstrip()
        suffix = " ".join(source.text[end : end + half].split("\n")).rstrip()
        return Link(
            source,
            f"…{prefix}" if begin > half else prefix,
            source.text[begin:end],
            f"{suffix}…" if end + half < len(source.text) else suffix,
            is_rounded,
            computation,
            result,
        )

    def _citation(self, link: Link, number: int = 0) -> _Citation | None:
        if (index := self._link_numbers.get(link)) is None:
            if len(self.links) >= MAX_LINKS:
                return None
            self.links.append(link)
            index = self._link_numbers[link] = len(self.links)
        return _Citation(link.source, index, number)

    def _render(self, source: Observation, link: int, number: int) -> str:
        name = _("Source %(number)s: %(title)s") % {"number": number, "title": source.title}
        return (
            f'<a class="cite" {self._target(source)} data-evidence="{link}" '
            f'aria-label="{escape(name)}">{number}</a>'
        )

    def _target(self, source: Observation) -> str:
        if self.documents and source.passage is not None:
            return f'href="{self.documents}{source.number}/" data-document'
        return f'href="{self.base}{source.step}"'

    def _write(self, block: Block, edits: Sequence[_Edit]) -> None:
        if not edits:
            self._pieces += [segment for _, segment in block.segments]
            return
        starts: list[int] = []
        offset = 0
        for kind, segment in block.segments:
            starts.append(offset)
            offset += len(plain_text(kind, segment))
        starts.append(offset)
        between: dict[int, list[_Citation]] = {}
        inside: list[_Edit] = []
        for edit in edits:
            index = bisect_left(starts, edit.start, hi=len(block.segments)) - 1
            is_inside = block.segments[index][0] == "text" and edit.start < starts[index + 1]
            if isinstance(edit.change, str) or is_inside:
                inside.append(edit)
            else:
                between.setdefault(boundary_after(block, index), []).append(edit.change)
        remaining = iter(inside)
        edit_now = next(remaining, None)
        for index, (kind, segment) in enumerate(block.segments):
            self._pieces += between.get(index, ())
            offset = position = starts[index]
            end = starts[index + 1]
            while kind == "text" and edit_now is not None and edit_now.start < end:
                start = max(edit_now.start, position)
                self._pieces.append(segment[position - offset : start - offset])
                position = max(start, min(edit_now.end, end))
                if isinstance(edit_now.change, _Citation):
                    self._pieces.append(edit_now.change)
                elif edit_now.change and position > start:
                    marked = segment[start - offset : position - offset]
                    closing = "</span>" if edit_now.change == UNSUPPORTED else "</a>"
                    self._pieces += [edit_now.change, marked, closing]
                if edit_now.end > end:
                    break
                edit_now = next(remaining, None)
            self._pieces.append(segment[position - offset :])
        self._pieces += between.get(len(block.segments), ())


def _keys(citations: Iterable[_Citation]) -> set[Key]:
    sources = [citation.source for citation in citations]
    return {source.key for source in sources} | {source.of_figures.key for source in sources}


def _position(edit: _Edit) -> Range:
    return edit.start, edit.end
