"""Embeddings: requests within the limits of a provider, joined and saved for a moment."""

import threading
import time
from array import array
from concurrent.futures import ThreadPoolExecutor

import pytest

from agents.knowledge.embeddings.errors import EmbeddingUnavailable
from agents.knowledge.embeddings.queries import QueryVectors
from agents.llm.embedding_batches import BatchLimits, batches, estimate, limits_for


class Provider:
    """Counts requests and their texts."""

    def __init__(self, seconds=0.05, error=None):
        self.requests, self.seconds, self.error = [], seconds, error

    def __call__(self, texts):
        self.requests.append(texts)
        time.sleep(self.seconds)
        if self.error:
            raise self.error
        return [array("f", [len(text)]) for text in texts]


def test_batches_keep_both_limits_and_the_order():
    texts = ["word " * 30] * 7
    found = list(batches(texts, BatchLimits(texts=4, tokens=2 * estimate(texts[0]))))

    assert [len(batch) for batch in found] == [2, 2, 2, 1]
    assert [text for batch in found for text in batch] == texts


def test_one_text_that_is_too_long_is_sent_alone():
    found = list(batches(["a", "b" * 1000, "c"], BatchLimits(texts=9, tokens=50)))

    assert [len(batch) for batch in found] == [1, 1, 1]


def test_japanese_counts_by_characters():
    assert estimate("東京の天気") >= 5
    assert limits_for("mistral/mistral-embed").tokens < limits_for("openai/x").tokens


def test_the_same_question_is_embedded_once():
    known, provider = QueryVectors(), Provider(0)

    first = known.embed(["tea"], "m", provider, joins=False)
    again = known.embed(["tea", "coffee", "tea"], "m", provider, joins=False)
    known.embed(["tea"], "other model", provider, joins=False)

    assert provider.requests == [["tea"], ["coffee"], ["tea"]]
    three = array("f", [3.0])
    assert (first, again) == ([three], [three, array("f", [6.0]), three])


def test_questions_that_come_together_are_one_request():
    known, provider = QueryVectors(), Provider()
    barrier = threading.Barrier(8)

    def ask(number):
        barrier.wait()
        return known.embed([f"{'x' * (number % 4)}?"], "m", provider, joins=True)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(8)))

    assert found == [[array("f", [1.0 + number % 4])] for number in range(8)]
    assert sum(map(len, provider.requests)) == 4
    assert len(provider.requests) <= 2


def test_a_failure_reaches_everyone_who_waits_and_is_not_kept():
    known, provider = QueryVectors(), Provider(0, EmbeddingUnavailable("Down."))
    with pytest.raises(EmbeddingUnavailable):
        known.embed(["tea"], "m", provider, joins=False)

    provider.error = None
    assert known.embed(["tea"], "m", provider, joins=False) == [array("f", [3.0])]


def test_what_is_kept_is_bounded_and_expires(monkeypatch):
    known, provider = QueryVectors(), Provider(0)
    monkeypatch.setattr("agents.knowledge.embeddings.queries.MAX_KEPT", 2)
    for text in "abc":
        known.embed([text], "m", provider, joins=False)
    assert len(known._kept) == 2

    monkeypatch.setattr("agents.knowledge.embeddings.queries.KEEP_SECONDS", -1)
    known.forget()
    known.embed(["c"], "m", provider, joins=False)
    known.embed(["c"], "m", provider, joins=False)
    assert provider.requests[-2:] == [["c"], ["c"]]
