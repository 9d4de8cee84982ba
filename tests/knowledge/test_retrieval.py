"""Search by meaning: vectors, their index, ranking and confidence."""

import os
from dataclasses import replace

import numpy as np
import pytest
from django.db import connection

from agents import knowledge
from agents.db import claims
from agents.engine.material import Passage
from agents.knowledge import embeddings, scope
from agents.knowledge.embeddings import local_model
from agents.knowledge.embeddings.demo_model import DemoEmbedding
from agents.knowledge.retrieval import matrix, pgvector, vector_index
from agents.knowledge.retrieval.confidence import certainty
from agents.knowledge.retrieval.finder import rank_passages
from agents.knowledge.retrieval.index import rarest
from agents.knowledge.retrieval.query import parse_query
from agents.knowledge.retrieval.ranking import Ranking
from agents.knowledge.retrieval.windows import split_windows, texts_to_embed
from agents.models import Chunk, ChunkVector, EmbeddingIndex

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]


@pytest.fixture
def use_model(settings):
    def use(name):
        update = {"embedding_model": name}
        settings.ENVIRONMENT = settings.ENVIRONMENT.model_copy(update=update)

    return use


def find(query, **more):
    return knowledge.find(query, scope=scope.everything(), **more)


def sources(result):
    return [passage.name for passage in result.candidates]


def add(name, text, **more):
    return knowledge.ingest_text(text, source=name, title=name, **more).document


def test_a_document_is_saved_with_its_vectors():
    document = add("a.md", "# Herons\n\n" + "They nest in reeds. " * 60)

    rows = ChunkVector.objects.filter(chunk__document=document, index=vector_index.active())
    assert set(rows.values_list("chunk", flat=True)) == {c.pk for c in document.chunks.all()}
    assert rows.filter(window__gt=0).exists()
    assert {len(row.vector) for row in rows} == {vector_index.active().dimension * 2}


def test_deleting_a_document_removes_its_vectors_from_the_next_search():
    add("a.md", "The heron nests."), add("b.md", "The stork nests.")
    assert set(sources(find("nests"))) == {"a.md", "b.md"}

    knowledge.default_collection().documents.filter(source="a.md").delete()

    assert sources(find("nests")) == ["b.md"]
    assert ChunkVector.objects.count() == 1


def test_a_document_moved_to_another_collection_is_not_found_in_the_old_one():
    document = add("a.md", "The heron nests.")
    old = scope.for_collection(document.collection_id)
    assert knowledge.find("heron", scope=old).passages

    document.collection = type(document.collection).objects.create(name="closed")
    document.save()

    assert knowledge.find("heron", scope=old).candidates == []


def test_vectors_that_are_missing_are_added_in_the_background():
    add("a.md", "The heron nests.", embeds=False)
    assert not ChunkVector.objects.exists()
    assert sources(find("heron")) == ["a.md"]  # by its words

    assert vector_index.keep_up()

    assert ChunkVector.objects.count() == 1
    assert vector_index.missing(vector_index.active()).count() == 0


def test_a_document_without_vectors_yet_is_compared_with_others_by_its_words():
    add("new.md", "# Stop a run\n\nPress Stop: the run ends at once.", embeds=False)
    add("old.md", "# Serve more people\n\nIf a process stops, its runs continue elsewhere.")

    assert sources(find("How do I stop a run?")) == ["new.md", "old.md"]


def test_a_new_model_is_switched_to_when_its_index_is_complete(use_model, monkeypatch):
    add("a.md", "The heron nests."), add("b.md", "The stork nests.")
    old = vector_index.active()
    monkeypatch.setattr(
        local_model, "embed", lambda texts, urgency: DemoEmbedding().embed(texts)
    )
    use_model("local")

    assert not vector_index.keep_up(is_over=lambda: True)
    assert vector_index.active() == old
    assert find("heron").passages

    assert vector_index.keep_up()
    new = EmbeddingIndex.objects.get()
    assert (new.model, new.status, new.done, new.total) == ("local", "active", 2, 2)
    assert find("heron").passages


def test_only_one_process_fills_an_index():
    add("a.md", "The heron nests.", embeds=False)
    assert claims.take(vector_index.ensure())

    assert not vector_index.keep_up()
    assert not ChunkVector.objects.exists()


def test_without_the_model_words_answer_and_the_reason_is_on_the_index(monkeypatch):
    add("a.md", "The heron nests.")

    def fail(*args, **kwargs):
        raise embeddings.EmbeddingUnavailable("No model.")

    monkeypatch.setattr(embeddings, "embed", fail)
    add("b.md", "The heron flies.")

    assert sorted(sources(find("heron"))) == ["a.md", "b.md"]
    assert not vector_index.keep_up()
    assert vector_index.active().problem == "No model."


def test_a_matrix_reads_only_what_is_new(django_assert_num_queries):
    add("a.md", "The heron nests.")
    index = vector_index.active()
    one = matrix.VectorMatrix(index.pk, index.dimension)
    one.refresh()
    add("b.md", "The stork nests.")

    one.refresh()

    assert (len(one.blocks), one.count) == (1, 2)
    with django_assert_num_queries(1):
        one.refresh()


def test_replaced_passages_are_noticed_by_a_search():
    add("a.md", "The heron nests in reeds.")
    assert find("heron").passages
    held = matrix.for_index(vector_index.active())

    add("a.md", "The heron nests in trees.")

    [passage] = find("heron").passages
    assert passage.text == "The heron nests in trees."
    assert held.count == ChunkVector.objects.count()


def test_a_document_moved_into_a_collection_is_found_there():
    document = add("a.md", "The heron nests.")
    other = type(document.collection).objects.create(name="other")
    assert find("heron", mode="vectors").passages

    type(document).objects.update(collection=other)

    result = knowledge.find("heron", scope=scope.for_collection(other.pk), mode="vectors")
    assert sources(result) == ["a.md"]


def test_a_passage_with_many_windows_does_not_displace_others():
    chunks = np.array([1] * 40 + [2, 3])
    scores = np.linspace(1, 0, 42, dtype=np.float32)[:, None]

    assert matrix._best(chunks, scores, 2, [3]).keys() == {1, 2, 3}


def test_common_words_are_left_out_of_a_large_library():
    assert rarest([9_000, 5, 0, 400], 1_000) == [0, 1, 3]
    assert rarest([9_000, 5, 0, 400], 50_000) == [1, 3]
    assert rarest([9_000, 8_000], 50_000) == [1]


def test_windows_stay_in_the_database_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(matrix, "MAX_BYTES", 3 * 2 * vector_index.ensure().dimension)
    add("a.md", "\n\n".join(f"Line {n}. " + "word " * 60 for n in range(12)) + "\n\nheron")

    assert find("heron").passages
    held = matrix.for_index(vector_index.active())
    assert held.count == Chunk.objects.count() < ChunkVector.objects.count()


def test_a_search_is_restricted_before_the_best_are_taken():
    for n in range(30):
        add(f"{n}.md", "heron heron")
    mine = type(knowledge.default_collection()).objects.create(name="mine")
    knowledge.ingest_text(
        "A heron among others.", source="own.md", title="own", collection=mine
    )
    held = matrix.for_index(vector_index.active())
    held.refresh()

    found = held.search(embeddings.embed(["heron"], "query"), [mine.pk], 5)

    assert list(found) == [Chunk.objects.get(document__source="own.md").pk]


def test_neighbouring_passages_are_one_result():
    text = "\n\n".join(f"The heron number {n}. " + "It nests in reeds. " * 40 for n in range(3))
    document = add("a.md", text)

    [passage] = find("heron nests in reeds").passages

    assert (passage.ordinal, passage.last_ordinal) == (1, document.chunks.count())
    assert passage.text.startswith("The heron number 0.")


@pytest.mark.parametrize(
    ("query", "exact"),
    [
        ("What does SQLITE_BUSY mean?", ["sqlite_busy"]),
        ("git reset --soft", ["--soft"]),
        ('the "two phase" rule', ["two phase"]),
        ("「有給休暇」の定義", ["有給休暇"]),
        ("limit of 32,767 columns", ["32,767"]),
        ("camelCase names in src/app.py", ["camelcase", "src/app.py"]),
        ("How do I stop a run?", []),
    ],
)
def test_identifiers_figures_and_quotations_are_recognized(query, exact):
    assert list(parse_query(query).exact) == exact


def test_a_question_is_also_asked_in_the_other_language():
    groups = {one[0]: one[1:] for one in parse_query("データベースサーバーの設定").groups}

    assert "server" in groups["サーバー"]
    assert "database" in groups["データベース"]
    assert "configuration" in groups["設定"]


def test_a_question_finds_a_document_in_the_other_language():
    add("en.md", "The printer on the second floor needs a driver.")
    add("ja.md", "休暇の申請は上司に提出します。")

    assert sources(find("プリンターのドライバー"))[0] == "en.md"
    assert sources(find("vacation request"))[0] == "ja.md"


def test_a_question_about_something_else_finds_nothing():
    add("a.md", "The heron nests in reeds and eats fish.")

    result = find("quarterly revenue forecast")

    assert (result.passages, result.confidence) == ([], "none")
    assert find("heron reeds").confidence == "good"


def ranking(words, *meanings, absent=0.0):
    passages = [
        Passage(title=str(n), path="", text="", ordinal=1, document=n, meaning=meaning)
        for n, meaning in enumerate(meanings)
    ]
    first = replace(passages[0], words=words)
    return Ranking(passages=[first, *passages[1:]], absent=absent)


def test_a_search_is_the_more_certain_the_more_words_and_meaning_agree():
    usual = certainty(ranking(0.4, 0.5, 0.4, 0.4))

    assert 0 < usual < 1
    assert certainty(ranking(0.9, 0.5, 0.4, 0.4)) > usual
    assert certainty(ranking(0.4, 0.6, 0.4, 0.4)) > usual
    assert certainty(ranking(0.4, 0.5, 0.4, 0.4, absent=0.5)) < usual
    assert certainty(Ranking()) == 0


def test_words_that_no_passage_has_count_as_absent():
    add("a.md", "The heron nests in reeds.")

    rankings = [
        rank_passages(parse_query(text), scope.everything())
        for text in ("heron reeds", "heron penguin", "penguin")
    ]

    assert rankings[0].absent == 0
    assert 0 < rankings[1].absent < 1
    assert rankings[2].absent == 1


def test_windows_are_whole_sentences_below_the_title():
    text = "One sentence that is fairly long. " * 30

    windows = split_windows(text)

    assert len(windows) > 1
    assert all(one.endswith(".") and len(one) <= 400 for one in windows)
    assert texts_to_embed("Title", "Heading", "Short.") == ["Title › Heading\nShort."]


@pytest.fixture
def use_pgvector(settings):
    """Search in the database, as after `CREATE EXTENSION vector` by its administrator."""
    settings.ENVIRONMENT = settings.ENVIRONMENT.model_copy(update={"pgvector": True})
    pgvector.forget()
    yield
    pgvector.forget()


def test_without_the_extension_vectors_are_searched_in_memory(use_pgvector):
    add("a.md", "The heron nests in reeds.")
    vector_index.keep_up()

    if not pgvector._state()[0]:
        assert not pgvector.is_ready(vector_index.active())
    assert find("heron", mode="vectors").passages


def test_pgvector_finds_the_same_as_the_search_in_memory(use_pgvector, settings):
    if connection.vendor != "postgresql":
        pytest.skip("pgvector is an extension of PostgreSQL.")
    if os.environ.get("TESTS_PGVECTOR") != "1":
        pytest.skip("Set TESTS_PGVECTOR=1 for a server with a working pgvector.")
    with connection.cursor() as cursor:
        cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
    pgvector.forget()
    for n, bird in enumerate(["heron", "stork", "crane", "ibis", "egret"] * 4):
        add(f"{n}.md", f"The {bird} nests in place {n}. " * 30)
    vector_index.keep_up()
    assert pgvector.is_ready(vector_index.active())
    add("late.md", "The heron came late.")
    assert pgvector.is_ready(vector_index.active())

    in_database = find("heron nests", mode="vectors", top_k=20)
    settings.ENVIRONMENT = settings.ENVIRONMENT.model_copy(update={"pgvector": False})
    in_memory = find("heron nests", mode="vectors", top_k=20)

    assert in_database.candidates == in_memory.candidates
