"""Searches the documents of the library for its search page."""

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from agents.db.installation import configured
from agents.db.sanitize import parse_id, sanitize_text
from agents.engine.material import Passage
from agents.knowledge import retrieval, scope
from agents.metering.budgets import paying
from agents.models import Chunk, Collection, Document
from agents.web.presentation.evidence import cited_rows

MAX_QUERY_CHARS = 300
EXCERPT_CHARS = 320
# Marks of Markdown that say nothing in an excerpt.
MARKUP = re.compile(
    r"^[ \t|:-]{3,}$|^[ \t]*(?:#{1,6}|[-*+]|\|)[ \t]|[ \t]*\|[ \t]*$|[`*]+", re.MULTILINE
)
CELL_EDGE = re.compile(r"[ \t]+\|[ \t]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    """What the search page displays; each hit is a passage and where it opens."""

    query: str
    collection: Collection | None
    hits: list[dict[str, Any]]
    documents: list[Document]  # whose title or file name has the words
    confidence: str


def search_page(user: User, params: Any) -> SearchPage:
    """Search the user's library, or the collection in the URL if they can open it."""
    query = sanitize_text(params.get("q", "")).strip()[:MAX_QUERY_CHARS]
    visible = Collection.objects.for_user(user)
    pk = parse_id(params.get("collection"))
    collection = visible.with_page().filter(pk=pk).first() if pk is not None else None
    if not query:
        return SearchPage(
            query="", collection=collection, hits=[], documents=[], confidence="none"
        )
    library_pks = visible.library().values_list("pk", flat=True)
    search_scope = (
        scope.Scope(frozenset([collection.pk]))
        if collection
        else scope.for_user(user).limited_to(library_pks)
    )
    with paying(user=user.pk):
        result = retrieval.find(query, configured.LIBRARY_RESULTS.value, scope=search_scope)
    chunks = Chunk.objects.select_related("document__collection").in_bulk(
        [passage.chunk for passage in result.passages]
    )
    hits = [
        {
            "passage": passage,
            "collection": chunk.document.collection.name,
            "url": place_url(passage, chunk, query),
            "excerpt": excerpt(passage.text, query),
        }
        for passage in result.passages
        if (chunk := chunks.get(passage.chunk))
    ]
    documents = Document.objects.filter(collection__in=search_scope.collections)
    for term in query.split()[:8]:
        documents = documents.filter(title__icontains=term)
    return SearchPage(
        query=query,
        collection=collection,
        hits=hits,
        documents=list(documents.select_related("collection").order_by("title")[:5]),
        confidence=result.confidence,
    )


def excerpt(text: str, query: str) -> SafeString:
    """Return the part of a passage around the first word of the query, with all marked."""
    text = " ".join(CELL_EDGE.sub(" · ", MARKUP.sub(" ", text)).split())
    terms = sorted(set(query.split()), key=len, reverse=True)[:12]
    pattern = re.compile("|".join(map(re.escape, terms)), re.IGNORECASE)
    first = pattern.search(text)
    start = max(0, first.start() - EXCERPT_CHARS // 4) if first else 0
    start = text.rfind(" ", 0, start) + 1 if start else 0
    visible = text[start : start + EXCERPT_CHARS]
    pieces = ["…" if start else ""]
    position = 0
    for match in pattern.finditer(visible):
        pieces += [
            escape(visible[position : match.start()]),
            f"<mark>{escape(match[0])}</mark>",
        ]
        position = match.end()
    pieces.append(escape(visible[position:]))
    if start + EXCERPT_CHARS < len(text):
        pieces.append("…")
    return mark_safe("".join(pieces))


def place_url(passage: Passage, chunk: Chunk, query: str = "") -> str:
    """Return the address that opens the document at this passage, at rows with the words."""
    url = reverse("library:document", args=[passage.document])
    rows: list[int] = []
    if chunk.end is not None:
        # A passage can have the head of its table before its own text.
        offset = chunk.end - len(chunk.text)
        rows = [offset + row for row in cited_rows(chunk.text, [query])]
    parameters = {"part": passage.part, "chunk": passage.chunk, "row": rows}
    return f"{url}?{urlencode(parameters, doseq=True)}#place"
