import pytest

from agents.knowledge import ParsedPart, index_document
from agents.models import Collection, Document
from tests.conftest import as_user


def add_document(
    collection, text="Green tea is steeped at 80 °C.", *, source="tea.md", **about
):
    """Add a document that is ready, with one part for each text."""
    texts = [text] if isinstance(text, str) else text
    kind = about.pop("kind", "text" if len(texts) == 1 else "page")
    document = Document(collection=collection, source=source, title=source, **about)
    parts = [ParsedPart(text=each, number=n, kind=kind) for n, each in enumerate(texts, 1)]
    index_document(document, parts)
    return document


@pytest.fixture
def collection(person):
    return Collection.objects.create(name="Tea", owner=person)


@pytest.fixture
def document(collection):
    return add_document(collection)


@pytest.fixture
def ada(person):
    return as_user(person)


@pytest.fixture
def eve(stranger):
    return as_user(stranger)
