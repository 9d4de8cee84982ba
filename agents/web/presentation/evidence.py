"""Evidence for an answer: which observations and passages its statements come from.

`find_evidence` links citations such as [1] and figures of an answer's HTML to the run's
observations. Work is bounded: see the limits below.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeVar

from django.db.models import QuerySet
from django.utils.safestring import SafeString, mark_safe

from agents.db.compiled_queries import compiled_query
from agents.engine.loop import HANDOFF_PREFIX, AskPersonTool
from agents.models import AgentStep, Run

from .formatting import format_compact

Found = TypeVar("Found")

# Limits per answer. Beyond them nothing is linked, and nothing is called unsupported.
MAX_SOURCES = 100
MAX_SOURCE_CHARS = 20_000  # characters of one observation
MAX_TOTAL_CHARS = 100_000
MAX_FIGURES = 3_000  # in all observations
MAX_LINKS = 200
MAX_SENTENCES = 300
MAX_PLACES = 1_000  # citations and figures of the answer
MAX_HTML_CHARS = 200_000
EXCERPT_CHARS, MAX_ASKED_CHARS = 240, 160
MIN_ROUNDED_DIGITS = 3  # fewer may be chance
MIN_TERMS, MIN_OVERLAP = 3, 0.6

LIST_KEYS = ("results", "items", "documents", "passages", "hits", "data")
LABEL_KEYS = ("title", "name", "url", "source", "id")
PASSAGE_HEAD = re.compile(r"^\[(\d{1,3})\] (.+)$", re.MULTILINE)
CITATION = re.compile(
    r"\[(?P<numbers>\d{1,3}(?:\s?[,、;]\s?\d{1,3}){0,9})\]"
    r"|【(?P<number>\d{1,3})(?:[†:][^】<]{0,60})?】"
)
_MONTHS = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)
_MONTH = rf"(?:{'|'.join(_MONTHS)})[a-z]{{0,6}}\.?"
_DATES = (
    r"\d{4}(?P<dash>[-/])\d{1,2}(?P=dash)\d{1,2}(?!\d)|\d{4}年\s?\d{1,2}月\s?\d{1,2}日"
    rf"|{_MONTH}\s\d{{1,2}}(?:st|nd|rd|th)?,?\s\d{{4}}|\d{{1,2}}\s{_MONTH},?\s\d{{4}}"
)
FIGURE = re.compile(
    rf"(?<![A-Za-z0-9_.])(?:(?P<date>{_DATES})|(?P<code>[A-Z]{{2,8}}-\d{{2,12}})"
    r"|(?P<sign>(?<![\w)])[-−])?(?P<currency>[$€£¥])?"
    r"(?P<digits>\d{1,3}(?:,\d{3}){1,5}(?:\.\d{1,12})?|\d{1,18}(?:\.\d{1,12})?)(?![\d_]|\.\d|,\d)"
    r"(?:\s?(?P<scale>thousand|million|billion|[千万億兆]))?"
    r"(?:\s?(?P<unit>%|円|ドル)|\s?(?P<word>[A-Za-z]{1,20}|[\u3041-\u30ff\u4e00-\u9fff]{1,2}))?)"
)
DIGIT = re.compile(r"\d")
SCALES = {
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "千": 10**3,
    "万": 10**4,
    "億": 10**8,
    "兆": 10**12,
}
CURRENCIES = {"円": "¥", "ドル": "$"}
# One character each, so that positions stay the same.
HALF_WIDTH = str.maketrans("０１２３４５６７８９，．％￥＄－＋［］", "0123456789,.%¥$-+[]")
SENTENCE_END = re.compile(r"(?<=[.!?])[)\]\"'”’]*\s+|(?<=[。！？])[」』）]*|\n+")
WORD = re.compile(r"[A-Za-z0-9_]{3,}")
JAPANESE = re.compile(r"[\u30a0-\u30ff\u4e00-\u9fff]{2,}")
COMMON = {
    *("all", "also", "and", "any", "are", "but", "can", "for", "from", "had", "has", "have"),
    *("into", "its", "more", "most", "not", "our", "than", "that", "the", "their", "then"),
    *("there", "these", "they", "this", "those", "was", "were", "which", "who", "will"),
    *("with", "you", "your"),
}
TAG = re.compile(r'<(/?)([a-z0-9]+)([^"<>]*(?:"[^"]*"[^"<>]*)*)>')
SKIPPED_TAGS = {"a", "pre", "code"}
VOID_TAGS = {"br", "hr"}
INLINE_TAGS = {"a", "strong", "em", "s", "code", "span", "sup"}
STATEMENT_TAGS = {"p", "li", "blockquote"}
STEP_LINK = "#step-"
UNSUPPORTED = '<span class="unsupported">'


class Source(NamedTuple):
    """An observation of a run, or one passage of it."""

    step: int
    tool: str
    text: str
    number: int = 0  # of a passage in its observation, as the model cites it
    label: str = ""  # where a passage comes from
    asked: str = ""  # what the tool was called with

    @property
    def excerpt(self) -> str:
        text = " ".join(self.text[: 2 * EXCERPT_CHARS].split())
        return text if len(text) <= EXCERPT_CHARS else f"{text[: EXCERPT_CHARS - 1]}…"


Sources = tuple[Source, ...]


class Link(NamedTuple):
    """What one link in an answer stands for: a place in a source."""

    source: Source
    before: str = ""
    match: str = ""
    after: str = ""
    is_rounded: bool = False


@dataclass(frozen=True)
class Evidence:
    """An answer's HTML with its links."""

    html: SafeString
    links: tuple[Link, ...] = ()
    sources: Sources = ()
    base: str = ""  # a step's address without its number
    is_complete: bool = True  # whether everything could be compared
    has_unsupported: bool = False

    @cached_property
    def used(self) -> list[Source]:
        """One source per step that the answer has links to, in their order."""
        steps = {link.source.step: link.source for link in reversed(self.links)}
        return [steps[number] for number in sorted(steps)]


class Figure(NamedTuple):
    """A number, date or code in a text."""

    start: int
    end: int
    value: Decimal | date | str
    unit: str = ""
    decimals: int = 0
    digits: int = 0  # significant ones
    is_trivial: bool = False


class Place(NamedTuple):
    source: int
    start: int
    end: int


# Sources


def sources_of(
    run: Run, visible_row: Callable[[AgentStep], AgentStep] | None = None
) -> Sources:
    """Return a run's observations and passages, as the viewer may see them."""
    steps = _tool_steps(run.pk)
    return observed(map(visible_row, steps) if visible_row else steps)


def observed(steps: Iterable[Any]) -> Sources:
    """Return the observations in these steps, split into passages where they are numbered.

    Results of other agents are left out: their own steps have what they saw.
    """
    found: list[Source] = []
    room = MAX_TOTAL_CHARS
    for step in steps:
        if not _is_observation(step):
            continue
        text = step.observation[: min(MAX_SOURCE_CHARS, room)]
        room -= len(text)
        if text:
            asked = format_compact(step.action_input)[:MAX_ASKED_CHARS]
            parts = _passages(step.number, step.action, text)
            found += [part._replace(asked=asked) for part in parts]
    return tuple(found[:MAX_SOURCES])


def _is_observation(step: Any) -> bool:
    is_handoff = step.action.startswith(HANDOFF_PREFIX) and step.action != AskPersonTool.name
    is_done = step.kind == AgentStep.Kind.TOOL and step.status == AgentStep.Status.DONE
    return is_done and not is_handoff


@compiled_query
def _tool_steps(run: int) -> QuerySet[AgentStep]:
    steps = AgentStep.objects.filter(run=run, kind=AgentStep.Kind.TOOL).order_by("number")
    return steps.only(
        "run", "number", "kind", "status", "action", "action_input", "observation"
    )


def _passages(step: int, tool: str, text: str) -> list[Source]:
    heads = list(PASSAGE_HEAD.finditer(text))
    if heads and heads[0].start() == 0:
        ends = [*(head.start() for head in heads[1:]), len(text)]
        return [
            Source(step, tool, text[head.end() : end].strip(), int(head[1]), head[2].strip())
            for head, end in zip(heads, ends, strict=True)
        ]
    if text.startswith(("[", "{")) and (items := _listed_items(text)):
        return [
            Source(step, tool, _item_text(item), number, _item_label(item))
            for number, item in enumerate(items, start=1)
        ]
    return [Source(step, tool, text)]


def _listed_items(text: str) -> list[dict[str, Any]]:
    """Return search results in JSON, which models cite by their position."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return []
    if isinstance(value, dict):
        value = next((value[key] for key in LIST_KEYS if isinstance(value.get(key), list)), [])
    is_list = isinstance(value, list) and 0 < len(value) <= MAX_SOURCES
    is_found = is_list and all(isinstance(i, dict) and _item_label(i) for i in value)
    return value if is_found else []


def _item_text(item: dict[str, Any]) -> str:
    texts = [str(value) for value in item.values() if isinstance(value, str | int | float)]
    return "\n".join(texts)


def _item_label(item: dict[str, Any]) -> str:
    labels = (item.get(key) for key in LABEL_KEYS)
    return next((label[:200] for label in labels if isinstance(label, str) and label), "")


# Figures


def figures_in(text: str) -> Iterator[Figure]:
    """Return numbers, dates and codes, in any of the usual forms."""
    if DIGIT.search(text) is None:
        return
    for found in FIGURE.finditer(_half_width(text)):
        figure = _date(found) if found["date"] else _code_or_number(found)
        if figure is not None:
            yield figure


def _half_width(text: str) -> str:
    return text if text.isascii() else text.translate(HALF_WIDTH)


def _code_or_number(found: re.Match[str]) -> Figure | None:
    if found["code"]:
        return Figure(found.start(), found.end("code"), found["code"])
    digits, scale = found["digits"], SCALES.get(found["scale"] or "", 1)
    value = Decimal(digits.replace(",", "")) * scale
    mark = found["unit"] or found["currency"] or ""
    is_whole = "." not in digits and not found["currency"] and not found["unit"] and scale == 1
    is_year = "," not in digits and 1900 <= value <= 2100
    ends = [found.end(name) for name in ("digits", "scale", "unit")]
    return Figure(
        found.start(),
        max(ends),
        -value if found["sign"] else value,
        CURRENCIES.get(mark, mark) or (found["word"] or "").lower().rstrip("s"),
        len(digits.partition(".")[2]) if scale == 1 else 0,
        len(digits.replace(",", "").replace(".", "").lstrip("0")),
        is_whole and (value <= 12 or is_year),
    )


def _date(found: re.Match[str]) -> Figure | None:
    text = found["date"]
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    if len(numbers) == 3:
        year, month, day = numbers
    else:
        name = next(name for name in _MONTHS if name in text)
        year, month, day = max(numbers), _MONTHS.index(name) + 1, min(numbers)
    try:
        return Figure(found.start(), found.end("date"), date(year, month, day))
    except ValueError:
        return None


@dataclass(frozen=True)
class SourceIndex:
    """The figures and words of a run's sources."""

    sources: Sources

    @cached_property
    def is_complete(self) -> bool:
        """Whether all observations were compared; if not, nothing is called unsupported."""
        sizes = Counter[int]()
        for source in self.sources:
            sizes[source.step] += len(source.text)
        is_cut = any(size >= MAX_SOURCE_CHARS for size in sizes.values())
        is_full = sizes.total() >= MAX_TOTAL_CHARS or len(self.sources) >= MAX_SOURCES
        return not is_cut and not is_full and len(self._figures) < MAX_FIGURES

    @cached_property
    def _figures(self) -> list[tuple[Figure, Place]]:
        found: list[tuple[Figure, Place]] = []
        for at, source in enumerate(self.sources):
            for figure in figures_in(source.text):
                found.append((figure, Place(at, figure.start, figure.end)))
                if len(found) >= MAX_FIGURES:
                    return found
        return found

    @cached_property
    def _exact(self) -> dict[Any, Place]:
        found: dict[Any, Place] = {}
        for figure, place in self._figures:
            found.setdefault(figure.value, place)
            found.setdefault((figure.value, figure.unit), place)
        return found

    @cached_property
    def _rounded(self) -> dict[tuple[int, Decimal], Place]:
        found: dict[tuple[int, Decimal], Place] = {}
        for figure, place in self._figures:
            if isinstance(figure.value, Decimal):
                for decimals in range(min(figure.decimals, 6)):
                    quantum = Decimal(1).scaleb(-decimals)
                    value = figure.value.quantize(quantum, ROUND_HALF_UP)
                    found.setdefault((decimals, value), place)
        return found

    def find(self, figure: Figure) -> tuple[Place, bool] | None:
        """Return where a source has this figure, and whether it was rounded."""
        value = figure.value
        if not isinstance(value, Decimal):
            place = self._exact.get(value)
            return (place, False) if place else None
        if figure.is_trivial:
            place = self._exact.get((value, figure.unit)) if figure.unit else None
            return (place, False) if place else None
        forms = [(value, 0), (-value, 0)] if value > 0 else [(value, 0)]
        forms += [(form / 100, 2) for form, _ in forms] if figure.unit == "%" else []
        for form, _more in forms:
            if place := self._exact.get(form):
                return place, False
        if figure.digits < MIN_ROUNDED_DIGITS:
            return None
        for form, more in forms:
            if place := self._rounded.get((figure.decimals + more, form)):
                return place, True
        return None

    @cached_property
    def _numbered(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for at, source in enumerate(self.sources):
            if source.number:
                found.setdefault(source.number, []).append(at)
        if not found:  # then a number can only mean an observation, in order
            found = {number: [at] for number, at in enumerate(self._first_parts, start=1)}
        return found

    @cached_property
    def _first_parts(self) -> list[int]:
        firsts: dict[int, int] = {}
        for at, source in enumerate(self.sources):
            firsts.setdefault(source.step, at)
        return list(firsts.values())

    def cited(self, number: int, sentence: str) -> int | None:
        """Return the passage with this number; of several, the one most like the sentence."""
        candidates = self._numbered.get(number, [])
        if len(candidates) < 2:
            return candidates[0] if candidates else None
        shared = self._shared_terms(sentence)
        return max(candidates, key=lambda at: (shared[at], at))

    @cached_property
    def _places_by_term(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for at, source in enumerate(self.sources):
            for term in terms_of(f"{source.label}\n{source.text}"):
                found.setdefault(term, []).append(at)
        return found

    def _shared_terms(self, text: str) -> Counter[int]:
        shared = Counter[int]()
        for term in terms_of(text):
            shared.update(self._places_by_term.get(term, ()))
        return shared

    def supports(self, sentence: str) -> bool:
        """Whether a source has most words of a sentence; short ones get the benefit."""
        terms = terms_of(sentence)
        if len(terms) < MIN_TERMS:
            return True
        best = max(self._shared_terms(sentence).values(), default=0)
        return best >= MIN_OVERLAP * len(terms)


def terms_of(text: str) -> frozenset[str]:
    """Return the stems of English words and pairs of Japanese characters."""
    words = (word.lower() for word in WORD.findall(text))
    stems = (word.rstrip("s")[:6] for word in words if word not in COMMON)
    pairs = (run[at : at + 2] for run in JAPANESE.findall(text) for at in range(len(run) - 1))
    return frozenset([*stems, *pairs])


# Answers


@lru_cache(maxsize=64)
def _index(sources: Sources) -> SourceIndex:
    return SourceIndex(sources)


@lru_cache(maxsize=128)
def find_evidence(
    html: str, sources: Sources, base: str = STEP_LINK, is_cut: bool = False
) -> Evidence:
    """Link the citations and figures of an answer to steps: `base` and a number.

    The HTML is that of `render_markdown`. Sentences that no source supports get a class, unless
    the sources are known to be cut.
    """
    if len(html) > MAX_HTML_CHARS:
        return Evidence(mark_safe(html), (), sources, base=base, is_complete=False)
    annotator = _Annotator(_index(sources), base, is_cut)
    for part in _blocks(html):
        annotator.add(part)
    written = mark_safe("".join(annotator.html))
    return Evidence(
        written,
        tuple(annotator.links),
        sources,
        base=base,
        is_complete=annotator.is_complete,
        has_unsupported=UNSUPPORTED in written,
    )


@dataclass
class _Block:
    """Text of one block, in segments between tags."""

    tag: str
    parts: list[tuple[str, str]] = field(default_factory=list)  # "text", "code" or "tag"


def _blocks(html: str) -> Iterator[_Block | str]:
    """Split HTML into blocks of text and the block tags between them."""
    stack: list[str] = []
    skipped = 0  # depth of elements whose text isn't linked
    block = _Block("")
    at = 0
    for found in TAG.finditer(html):
        if found.start() > at:
            block.parts.append(("code" if skipped else "text", html[at : found.start()]))
        at, name = found.end(), found[2]
        if name in INLINE_TAGS or name == "br":
            block.parts.append(("tag", found[0]))
        else:
            yield block
            yield found[0]
        if found[1]:
            if stack:
                skipped -= stack.pop().startswith("!")
        elif name not in VOID_TAGS:
            is_skipped = name in SKIPPED_TAGS or 'class="math' in found[3]
            skipped += is_skipped
            stack.append(f"{'!' if is_skipped else ''}{name}")
        if name not in INLINE_TAGS and name != "br":
            open_blocks = [tag for tag in stack if tag.lstrip("!") not in INLINE_TAGS]
            block = _Block(open_blocks[-1] if open_blocks else "")
    if at < len(html):
        block.parts.append(("text", html[at:]))
    yield block


class _Annotator:
    """Writes blocks with links and marks."""

    def __init__(self, index: SourceIndex, base: str, is_cut: bool) -> None:
        self.index, self.base = index, base
        self.is_complete = index.is_complete and not is_cut
        self.html: list[str] = []
        self.links: list[Link] = []
        self._sentences = 0
        self._places = 0
        self._known: dict[tuple[Any, ...], int] = {}

    def add(self, block: _Block | str) -> None:
        if isinstance(block, str):
            self.html.append(block)
            return
        text = "".join(_plain(kind, part) for kind, part in block.parts)
        if not text.strip():
            self.html += [part for _, part in block.parts]
            return
        spans = list(self._spans(text, block))
        self._write(block, spans)

    def _spans(self, text: str, block: _Block) -> Iterator["_Span"]:
        """Return what to wrap, in order: links, or sentences without any."""
        linkable = _linkable_ranges(block)
        start = 0
        for end in [*(found.end() for found in SENTENCE_END.finditer(text)), len(text)]:
            sentence = text[start:end]
            if sentence.strip():
                links, has_other_figures = self._links(sentence, start, linkable)
                yield from links
                if not links and self._is_unsupported(sentence, has_other_figures, block):
                    yield _Span(
                        start, start + len(sentence.rstrip()), '<span class="unsupported">'
                    )
            start = end

    def _is_unsupported(self, sentence: str, has_figures: bool, block: _Block) -> bool:
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
        taken: list[tuple[int, int]] = []
        for found in self._within_limit(CITATION.finditer(_half_width(sentence))):
            taken.append(found.span())
            spans += [
                span
                for span in self._citations(found, sentence, start)
                if _is_within(span, linkable)
            ]
        has_others = False
        for figure in self._within_limit(figures_in(sentence)):
            is_cited = any(a <= figure.start < b for a, b in taken)
            span = _Span(start + figure.start, start + figure.end, "")
            if is_cited or not _is_within(span, linkable):
                continue
            tag = self._figure_tag(figure)
            spans += [span._replace(open=tag)] if tag else []
            has_others |= not tag and not figure.is_trivial
        return sorted(spans), has_others

    def _within_limit(self, places: Iterator[Found]) -> Iterator[Found]:
        """Yield places until the answer has too many of them."""
        for place in places:
            self._places += 1
            if self._places > MAX_PLACES:
                self.is_complete = False
                return
            yield place

    def _citations(self, found: re.Match[str], sentence: str, start: int) -> Iterator["_Span"]:
        numbers = list(re.finditer(r"\d+", found[found.lastgroup or 0]))
        for number in numbers:
            at = self.index.cited(int(number[0]), sentence)
            if (
                at is None
                or (tag := self._tag(Link(self.index.sources[at]), "evidence-cite")) is None
            ):
                continue
            offset = found.start(found.lastgroup or 0)
            span = (offset + number.start(), offset + number.end())
            span = found.span() if len(numbers) == 1 else span
            yield _Span(start + span[0], start + span[1], tag)

    def _figure_tag(self, figure: Figure) -> str | None:
        hit = self.index.find(figure)
        if hit is None:
            return None
        (at, begin, end), is_rounded = hit
        source = self.index.sources[at]
        half = EXCERPT_CHARS // 2
        before = " ".join(source.text[max(0, begin - half) : begin].split("\n")).lstrip()
        after = " ".join(source.text[end : end + half].split("\n")).rstrip()
        before = f"…{before}" if begin > half else before
        after = f"{after}…" if end + half < len(source.text) else after
        return self._tag(
            Link(source, before, source.text[begin:end], after, is_rounded), "evidence-figure"
        )

    def _tag(self, link: Link, kind: str) -> str | None:
        if (number := self._known.get(link)) is None:
            if len(self.links) >= MAX_LINKS:
                return None
            self.links.append(link)
            number = self._known[link] = len(self.links)
        href = f"{self.base}{link.source.step}"
        return f'<a class="evidence {kind}" href="{href}" data-evidence="{number}">'

    def _write(self, block: _Block, spans: list["_Span"]) -> None:
        at = 0
        for kind, part in block.parts:
            if kind == "tag":
                self.html.append(part)
                at += len(_plain(kind, part))
                continue
            end, position = at + len(part), at
            for span in spans if kind == "text" else ():
                left, right = max(span.start, position), min(span.end, end)
                if left >= right:
                    continue
                close = "</a>" if span.open.startswith("<a") else "</span>"
                self.html += [part[position - at : left - at], span.open]
                self.html += [part[left - at : right - at], close]
                position = right
            self.html.append(part[position - at :])
            at = end


class _Span(NamedTuple):
    start: int
    end: int
    open: str


def _plain(kind: str, part: str) -> str:
    if kind == "tag":
        return "\n" if part.startswith("<br") else ""
    return part


def _linkable_ranges(block: _Block) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    at = 0
    for kind, part in block.parts:
        size = len(_plain(kind, part))
        if kind == "text":
            ranges.append((at, at + size))
        at += size
    return ranges


def _is_within(span: _Span, ranges: Sequence[tuple[int, int]]) -> bool:
    """Whether it lies in one segment: a link can't cross other tags."""
    return any(start <= span.start and span.end <= end for start, end in ranges)
