"""The commands that ingest documents, search them, and measure search."""

import json

import pytest
from django.core.management import CommandError, call_command

from agents.catalog.language_models import reranking
from agents.knowledge import evaluation
from agents.models import Collection, Document, EmbeddingIndex
from tests.language_models import make_model

pytestmark = [pytest.mark.django_db]


@pytest.fixture
def pages(tmp_path):
    (tmp_path / "en").mkdir()
    (tmp_path / "en" / "heron.html").write_text(
        "<title>Herons</title><nav>Home</nav><h1>Herons</h1><h2>Food</h2><p>They eat fish.</p>"
    )
    (tmp_path / "stork.md").write_text("# Storks\n\nThey eat frogs.")
    call_command("ingest", tmp_path, collection="Birds", verbosity=0)
    return tmp_path


def test_pages_are_ingested_into_a_named_collection_and_found_by_path(pages, capsys):
    capsys.readouterr()

    call_command("search", "What do herons eat?", json=True, top=1)

    found = json.loads(capsys.readouterr().out)
    assert Collection.objects.get().name == "Birds"
    assert found["confidence"] != "none"
    [hit] = found["hits"]
    assert hit["document"] == str(pages / "en" / "heron.html")
    assert (hit["heading"], hit["text"]) == ("Food", "They eat fish.")


def test_a_file_of_questions_gets_a_line_each(pages, tmp_path, capsys):
    file = tmp_path / "questions.jsonl"
    file.write_text('{"id": 1, "question": "frogs"}\n\n{"id": "b", "question": "tax return"}\n')
    capsys.readouterr()

    call_command("search", queries=file)

    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["id"], first["hits"][0]["title"]) == (1, "Storks")
    assert (second["id"], second["confidence"]) == ("b", "none")
    assert first["score"] > second["score"]


def test_a_search_without_results_says_so(pages, capsys):
    call_command("search", "tax return")

    assert "Nothing relevant found" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "Enter a question"),
        ({"queries": __file__}, "Line 1 of"),
        ({"question": "heron", "collection": "Fish"}, "no collection named 'Fish'"),
    ],
)
def test_bad_input_gets_a_sentence(options, sentence, tmp_path):
    if "queries" in options:
        options["queries"] = tmp_path / "bad.jsonl"
        options["queries"].write_text("[]\n")
    question = options.pop("question", "")

    with pytest.raises(CommandError, match=sentence):
        call_command("search", question, **options)


def test_a_model_that_is_unknown_measures_nothing(tmp_path):
    (tmp_path / "questions.jsonl").write_text("")

    with pytest.raises(CommandError, match="nobody"):
        call_command("evaluate_search", tmp_path, model="nobody")


def test_a_models_order_is_measured_beside_the_others(tmp_path, capsys, monkeypatch):
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "heron.md").write_text("# Herons\n\nThey eat fish.")
    (tmp_path / "documents" / "stork.md").write_text("# Storks\n\nThey eat frogs.")
    question = {
        "id": "1",
        "question": "frogs on icebergs near whales",
        "documents": ["stork.md"],
    }
    (tmp_path / "questions.jsonl").write_text(json.dumps(question))
    make_model("own", "openai/own", api_key="sk-test")

    async def second(query, texts):
        return reranking.Judgment(positions=[1])

    own = reranking.ModelReranker(model="own", judge=second, count=12, seconds=1)
    monkeypatch.setattr(reranking, "by_own_model", lambda name: own)

    call_command("evaluate_search", tmp_path, model="own")

    *others, by_model = capsys.readouterr().out.split("recall@1 ")[1:]
    assert "1.000" not in others[-1]
    assert "1.000" in by_model


def test_a_set_is_measured_and_leaves_nothing_behind(tmp_path, capsys):
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "heron.md").write_text("# Herons\n\nThey eat fish.")
    (tmp_path / "documents" / "stork.md").write_text("# Storks\n\nThey eat frogs.")
    (tmp_path / "questions.jsonl").write_text(
        '{"id": "1", "kind": "keyword", "question": "herons", "documents": ["heron.md"]}\n'
        '{"id": "2", "kind": "unanswerable", "question": "tax", "documents": []}\n'
    )

    call_command("evaluate_search", tmp_path)

    said = capsys.readouterr().out
    assert said.count("all           1      1.00      1.00      1.00      1.00   1.000") == 3
    assert said.count("AUC 1.000") == 3
    assert not Document.objects.exists()


def test_the_products_own_set_has_an_answer_for_each_question():
    questions = evaluation.read_questions(evaluation.OWN_SET / "questions.jsonl")
    folder = evaluation.OWN_SET / "documents"

    assert len(questions) >= 80
    assert len({one.id for one in questions}) == len(questions)
    assert all((folder / name).is_file() for one in questions for name in one.documents)


def test_reindexing_computes_all_vectors_again(pages, capsys):
    old = EmbeddingIndex.objects.get()

    call_command("reindex", all=True)

    new = EmbeddingIndex.objects.get()
    assert new.pk != old.pk
    assert "demo  active  2 passages" in capsys.readouterr().out


@pytest.mark.thorough
def test_hybrid_search_beats_words_and_vectors_alone(settings, capsys):
    update = {"embedding_model": "local"}
    settings.ENVIRONMENT = settings.ENVIRONMENT.model_copy(update=update)

    call_command("evaluate_search")

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    for column, least in ((4, 0.9), (-1, 0.85)):  # recall@5, MRR
        words, vectors, hybrid = [float(line[column]) for line in lines if line[:1] == ["all"]]
        assert hybrid > max(words, vectors)
        assert hybrid >= least
    assert [float(line[-1]) for line in lines if line[:1] == ["unanswerable"]][-1] >= 0.85
