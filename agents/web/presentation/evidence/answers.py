"""Links an answer's citations and figures to what the run observed."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

from django.utils.safestring import SafeString, mark_safe

from .annotator import UNSUPPORTED, Annotator, Link
from .source_index import SourceIndex
from .sources import Observation, Sources
from .text_blocks import split_blocks

MAX_HTML_CHARS = 200_000
STEP_LINK = "#step-"


@dataclass(frozen=True)
class Evidence:
    """An answer's HTML with its links."""

    html: SafeString
    links: tuple[Link, ...] = ()
    sources: Sources = ()
    base: str = ""  # a step's address without its number
    documents: str = ""  # a passage's address without its number, if it can be opened
    is_complete: bool = True  # whether everything could be compared
    has_unsupported: bool = False

    @cached_property
    def used(self) -> list[Observation]:
        """One source per step that the answer has links to, in their order.

        Passages of documents have a list of their own.
        """
        linked = [link.source for link in self.links if link.source.passage is None]
        steps = {source.step: source for source in reversed(linked)}
        return [steps[number] for number in sorted(steps)]

    @cached_property
    def cited(self) -> list[Observation]:
        """The passages that the answer cites, by number."""
        cited = {link.source.number for link in self.links if not link.match}
        return [source for source in self._passages if source.number in cited]

    @cached_property
    def also_read(self) -> list[Observation]:
        """The passages that the model read and the answer doesn't cite."""
        cited = {source.number for source in self.cited}
        return [source for source in self._passages if source.number not in cited]

    @cached_property
    def _passages(self) -> list[Observation]:
        by_number = {
            source.number: source for source in self.sources if source.passage is not None
        }
        return [by_number[number] for number in sorted(by_number)]


@lru_cache(maxsize=64)
def _index(sources: Sources) -> SourceIndex:
    return SourceIndex(sources)


@lru_cache(maxsize=128)
def find_evidence(
    html: str,
    sources: Sources,
    base: str = STEP_LINK,
    is_cut: bool = False,
    documents: str = "",
) -> Evidence:
    """Link the citations and figures of an answer to steps: `base` and a number.

    The HTML is that of `render_markdown`. Sentences that no source supports get a class, unless
    the sources are known to be cut. Citations of passages lead to `documents` and their number.
    Without sources nothing is written into the HTML: the page marks the whole answer.
    """
    if not sources:
        return Evidence(mark_safe(html), base=base, documents=documents, is_complete=not is_cut)
    if len(html) > MAX_HTML_CHARS:
        return Evidence(
            mark_safe(html), (), sources, base=base, documents=documents, is_complete=False
        )
    annotator = Annotator(_index(sources), base, is_cut, documents)
    for block in split_blocks(html):
        annotator.add(block)
    linked_html = mark_safe("".join(annotator.html))
    return Evidence(
        linked_html,
        tuple(annotator.links),
        sources,
        base=base,
        documents=documents,
        is_complete=annotator.is_complete,
        has_unsupported=UNSUPPORTED in linked_html,
    )
