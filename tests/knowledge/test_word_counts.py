"""How many passages have a word, and which of them are found, in a large library."""

import pytest

from agents import knowledge
from agents.knowledge import scope
from agents.knowledge.retrieval import full_text, tsvector
from agents.models import Collection

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]


@pytest.fixture
def library():
    """Forty documents: each has both words, every second one has them as a phrase."""
    shelf = Collection.objects.create(name="shelf", is_open=True)
    for n in range(40):
        text = "The page token." if n % 2 else "The token of a page."
        knowledge.ingest_text(text, source=f"{n}.md", title=f"Number {n}", collection=shelf)
    return shelf


def search(*words, where=None, limit=100):
    return full_text.search([[word] for word in words], limit, where or scope.everything())


def test_a_phrase_is_counted_exactly(library):
    assert search("page_token", "token", "missing").counts == [20, 40, 0]


def test_a_phrase_of_common_words_is_estimated_from_a_sample(library, monkeypatch):
    monkeypatch.setattr(tsvector, "MAX_COMPARED", 10)

    phrase, word, missing = search("page_token", "token", "missing").counts

    assert 1 <= phrase <= 40
    assert (word, missing) == (40, 0)
    assert len(search("page_token").scores) == 20


@pytest.mark.parametrize("count", [1, 30])
def test_the_best_in_scope_are_found_in_a_narrow_and_in_a_broad_scope(library, count):
    own = Collection.objects.create(name="own")
    for n in range(count):
        knowledge.ingest_text("A token.", source=f"own{n}.md", title="Mine", collection=own)

    found = search("token", where=scope.for_collection(own.pk), limit=20).scores

    chunks = set(own.documents.values_list("chunks__pk", flat=True))
    assert len(found) == min(count, 20)
    assert set(found) <= chunks
