"""An embedding model at a provider, over OpenAI's wire format."""

from contextlib import contextmanager
from hashlib import sha256

import pytest

from agents import knowledge
from agents.knowledge import embeddings, scope
from agents.knowledge.embeddings import EmbeddingUnavailable
from agents.knowledge.retrieval import vector_index
from agents.llm.embedding_batches import BatchLimits
from agents.llm.litellm_model import RerankClient, embedding
from agents.models import ChunkVector, EmbeddingIndex
from tests.wire import fail, serve_in_thread

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("litellm_loop"),
    # Both are said of LiteLLM's own types and code.
    pytest.mark.filterwarnings("ignore:Item '.*' on TypedDict class:UserWarning"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning"),
]


class Provider:
    """Returns vectors of a given length, in reverse order, as the format allows."""

    def __init__(self, dimension=8):
        self.dimension = dimension
        self.refusal = None
        self.batches = []

    def __call__(self, request):
        if self.refusal:
            return self.refusal
        texts = request.body["input"]
        self.batches.append(texts)
        data = [
            {"object": "embedding", "index": at, "embedding": self.vector(text)}
            for at, text in enumerate(texts)
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return {"object": "list", "data": data[::-1], "model": "m", "usage": usage}

    def vector(self, text):
        return [byte / 255 for byte in sha256(text.encode()).digest()[: self.dimension]]


@contextmanager
def provider(settings, model="openai/embed-small", **options):
    served = Provider(**options)
    with serve_in_thread(pages={"/v1/embeddings": served}) as server:
        update = {"embedding_model": model, "embedding_url": server.url, "model_retries": 0}
        settings.ENVIRONMENT = settings.ENVIRONMENT.model_copy(update=update)
        yield served


def add(name, text):
    return knowledge.ingest_text(text, source=name, title=name).document


def find(query):
    return knowledge.find(query, scope=scope.everything(), minimum=0)


def test_texts_are_sent_in_batches_and_vectors_are_put_in_order(settings, monkeypatch):
    monkeypatch.setattr(embedding, "limits_for", lambda model: BatchLimits(texts=2))
    with provider(settings) as served:
        vectors = embeddings.embed(["a", "b", "c"])

    assert served.batches == [["a", "b"], ["c"]]
    expected = served.vector("b")
    length = sum(number**2 for number in expected) ** 0.5
    assert vectors[1].tolist() == pytest.approx([number / length for number in expected])


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (fail(401, "Incorrect API key"), "API key"),
        (fail(429, "Slow down"), "embed-small"),
        (fail(500, "Broken"), "embed-small"),
    ],
)
def test_an_error_is_a_sentence_and_words_still_find(settings, refusal, words):
    with provider(settings) as served:
        add("heron.md", "The heron nests in reeds.")
        served.refusal = refusal

        with pytest.raises(EmbeddingUnavailable, match=words):
            embeddings.embed(["heron"], "query")
        assert [hit.name for hit in find("heron").candidates] == ["heron.md"]


def test_an_incomplete_response_is_an_error_each_time_and_nobody_waits(settings):
    with provider(settings) as served:
        served.refusal = {"object": "list", "data": [], "model": "m", "usage": {}}
        for _attempt in range(2):
            with pytest.raises(EmbeddingUnavailable, match="0 vectors for 1 texts"):
                embeddings.embed(["heron"], "query")


def test_a_model_with_other_dimensions_is_indexed_while_the_old_one_answers(settings):
    add("heron.md", "The heron nests in reeds.")
    old = vector_index.active()
    with provider(settings, dimension=12):
        new = vector_index.ensure()
        assert (new.dimension, new.status) == (12, EmbeddingIndex.Status.BUILDING)
        assert vector_index.active() == old
        assert find("heron").passages

        assert vector_index.keep_up()

        new.refresh_from_db()
        assert (new.status, new.done, new.total) == (EmbeddingIndex.Status.ACTIVE, 1, 1)
        assert find("heron").passages
    assert not ChunkVector.objects.filter(index=old.pk).exists()


def test_a_model_that_changes_its_dimension_is_indexed_again(settings):
    with provider(settings, dimension=8) as served:
        add("heron.md", "The heron nests in reeds.")
        served.dimension = 12

        assert find("heron").passages
        add("stork.md", "The stork nests on roofs.")
        vector_index.keep_up()

        assert vector_index.active().dimension == 12
        assert {hit.name for hit in find("nests").candidates} == {"heron.md", "stork.md"}
        assert ChunkVector.objects.filter(index=vector_index.active()).count() == 2


def test_a_failure_in_the_background_is_written_on_the_index(settings):
    add("heron.md", "The heron nests in reeds.")
    with provider(settings, dimension=12) as served:
        new = vector_index.ensure()
        served.refusal = fail(401, "Incorrect API key")

        assert not vector_index.keep_up()

    new.refresh_from_db()
    assert "API key" in new.problem
    assert vector_index.active() != new


def test_a_reranking_model_is_called_in_its_own_format():
    results = [{"index": 0, "relevance_score": 0.1}, {"index": 1, "relevance_score": 0.9}]
    page = {"id": "1", "results": results, "meta": {"billed_units": {"search_units": 1}}}
    pages = dict.fromkeys(["/v1/rerank", "/v1/v2/rerank", "/v2/rerank"], page)
    with serve_in_thread(pages=pages) as server:
        client = RerankClient(
            model="cohere/rerank-v3.5", base_url=f"{server.url}/rerank", api_key="sk-test"
        )

        found, usage = client.order_now("birds", ["herons", "storks"])

    assert found == [1, 0]
    assert (usage.model, usage.cost) == ("cohere/rerank-v3.5", pytest.approx(0.002))
    assert server.requests[0].body["documents"] == ["herons", "storks"]


def test_a_reranking_model_cannot_bill_more_than_it_was_sent():
    results = [{"index": 0, "relevance_score": 0.1}]
    lie = {"billed_units": {"search_units": 10**9}, "tokens": {"input_tokens": 10**12}}
    page = {"id": "1", "results": results, "meta": lie}
    pages = dict.fromkeys(["/v1/rerank", "/v1/v2/rerank", "/v2/rerank"], page)
    with serve_in_thread(pages=pages) as server:
        client = RerankClient(
            model="cohere/rerank-v3.5", base_url=f"{server.url}/rerank", api_key="sk-test"
        )

        _found, usage = client.order_now("birds", ["herons", "storks"])

    assert usage.cost <= 0.004
    assert usage.prompt_tokens < 2_000
    assert usage.to_dict()["reported"]["cost"] > 10**5
