"""Links an answer's citations and figures to what the run observed."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language

from .annotator import UNSUPPORTED, Annotator, Link, NumberedSource
from .source_index import SourceIndex
from .sources import Observation, Sources
from .text_blocks import item_counts, split_blocks

MAX_HTML_CHARS = 200_000
STEP_LINK = "#step-"


@dataclass(frozen=True)
class Evidence:
    """An answer's HTML with its citations."""

    html: SafeString
    links: tuple[Link, ...] = ()
    sources: Sources = ()
    listed: tuple[NumberedSource, ...] = ()  # those it cites, by number
    base: str = ""  # a step's address without its number
    documents: str = ""  # a passage's address without its number, if it can be opened
    is_complete: bool = True  # whether everything could be compared
    has_unsupported: bool = False

    @cached_property
    def also_read(self) -> list[Observation]:
        """The passages that the model read and the answer doesn't cite."""
        listed = {source.key for _number, source in self.listed}
        by_number = {
            source.number: source for source in self.sources if source.passage is not None
        }
        passages = [by_number[number] for number in sorted(by_number)]
        return [source for source in passages if source.key not in listed]


@lru_cache(maxsize=64)
def _index(sources: Sources, question: str) -> SourceIndex:
    return SourceIndex(sources, question)


def find_evidence(
    html: str,
    sources: Sources,
    base: str = STEP_LINK,
    is_cut: bool = False,
    documents: str = "",
    question: str = "",
) -> Evidence:
    """Cite the sources of an answer after its sentences and rows: `base` and a step's number.

    The HTML is that of `render_markdown`. Sentences that no source supports and figures that no
    source has get a class, unless the sources are known to be cut. Figures of the question need
    no source. Citations of passages lead to `documents` and their number. Without sources
    nothing is written into the HTML: the page marks the whole answer.
    """
    return _find(html, sources, base, is_cut, documents, question, get_language())


@lru_cache(maxsize=128)
def _find(
    html: str,
    sources: Sources,
    base: str,
    is_cut: bool,
    documents: str,
    question: str,
    _language: str | None,  # of the names of links
) -> Evidence:
    if not sources:
        return Evidence(mark_safe(html), base=base, documents=documents, is_complete=not is_cut)
    if len(html) > MAX_HTML_CHARS:
        return Evidence(
            mark_safe(html), (), sources, base=base, documents=documents, is_complete=False
        )
    index = _index(sources, question)
    annotator = Annotator(index, base, is_cut, documents, item_counts(html))
    for block in split_blocks(html):
        annotator.add(block)
    cited_html, listed = annotator.finish()
    return Evidence(
        mark_safe(cited_html),
        tuple(annotator.links),
        sources,
        tuple(listed),
        base=base,
        documents=documents,
        is_complete=annotator.is_complete,
        has_unsupported=UNSUPPORTED in cited_html,
    )
