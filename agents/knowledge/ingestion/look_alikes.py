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
    # SQLite compares only ASCII letters without their case.
    cases = {document.source, document.source.lower(), document.source.upper()}
    looks_alike = Q()
    for name in sorted({normalize(form, name) for form in ("NFC", "NFD") for name in cases}):
        looks_alike |= Q(source__iexact=name)
    earlier_titles = earlier.filter(looks_alike).values_list("title", flat=True)
    folded = fold_name(title)
    count = sum(fold_name(earlier_title).startswith(folded) for earlier_title in earlier_titles)
    number = f" ({count + 1})" if count else ""
    return title[: MAX_TITLE_CHARS - len(number)] + number
