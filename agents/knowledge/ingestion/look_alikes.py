"""Tells apart documents of a collection whose names look the same.

Their names can differ in case, or in how accents are encoded: a Mac sends decomposed letters.
"""

from unicodedata import normalize

from django.db.models import Q

from agents.db.sanitize import fold_name
from agents.models import Document

MAX_TITLE_CHARS = 200


def distinct_title(document: Document, title: str) -> str:
    """Return the title, with a number if an earlier document has the same one and name."""
    if document.url:
        return title[:MAX_TITLE_CHARS]
    earlier = Document.objects.filter(collection=document.collection_id, pk__lt=document.pk)
    titles = earlier.filter(_looks_like(document.source)).values_list("title", flat=True)
    wanted = fold_name(title)
    taken = sum(fold_name(other).startswith(wanted) for other in titles)
    number = f" ({taken + 1})" if taken else ""
    return title[: MAX_TITLE_CHARS - len(number)] + number


def _looks_like(source: str) -> Q:
    # SQLite compares only ASCII letters without their case.
    cases = {source, source.lower(), source.upper()}
    found = Q()
    for name in sorted({normalize(form, name) for form in ("NFC", "NFD") for name in cases}):
        found |= Q(source__iexact=name)
    return found
