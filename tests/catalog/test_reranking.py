"""Re-ranking of passages by a model, over the wire."""

import json
import re
from unittest.mock import patch

import pytest
from asgiref.sync import sync_to_async

from agents.catalog.language_models import reranking
from agents.engine.call_context import CallContext, use_context
from agents.engine.events import StatusKind
from agents.engine.material import Passage
from agents.engine.sentences import Sentence
from agents.models import ToolRegistration
from agents.tools.search import SearchResult, SearchTool
from agents.web.presentation.steps import step_notes
from tests.language_models import make_model
from tests.wire import USAGE, WireServer, fail, hang, say

PASSAGES = [
    Passage(title=name, path=f"{name}.md", ordinal=1, text=f"About {name}s.")
    for name in ("heron", "stork", "crane")
]


class Library:
    """A library that returns the same passages for every question."""

    def __init__(self):
        self.requests = []

    async def search(self, request):
        self.requests.append(request)
        return SearchResult(passages=PASSAGES, searched=["Birds"])


def reranker(url, model="openai/judge", **settings):
    make_model("judge", model, base_url=url, api_key="sk-test")
    row = ToolRegistration(name="search", rerank_model="judge", **settings)
    return reranking.from_row(row)


async def search(url, **settings):
    tool = SearchTool(Library(), 2)
    tool.reranker = await sync_to_async(reranker)(url, **settings)
    result = await tool.execute({"query": "Which bird brings babies?"})
    return [source.title for source in result.sources], result


pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_model_puts_the_passages_in_order():
    async with WireServer([say("The order is [2, 3, 1].")]) as server:
        titles, result = await search(server.url)

    assert titles == ["stork", "crane"]
    assert result.note == "Re-ranked by judge."
    sent = json.dumps(server.requests[0].body)
    assert "Which bird brings babies?" in sent
    assert "[2] stork" in sent


async def test_passages_that_the_model_left_out_stay_at_the_end():
    async with WireServer([say("[3, 3, 9]")]) as server:
        titles, _ = await search(server.url)

    assert titles == ["crane", "heron"]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (hang(say("[2, 1]"), after=0), "judge didn't respond within 0.5 s."),
        (fail(401, "Wrong key"), "judge"),
        (say("I can't decide."), "judge returned no ranking."),
    ],
)
async def test_without_an_order_the_passages_stay_as_they_were(reply, reason):
    async with WireServer([reply] * 3) as server:
        titles, result = await search(server.url, rerank_seconds=0.5)

    assert titles == ["heron", "stork"]
    assert result.note.startswith("Not re-ranked: ")
    assert reason in result.note
    assert "Not re-ranked" in result.text


async def test_as_many_passages_are_searched_as_the_model_reads():
    async with WireServer([say("[1, 2, 3]")]) as server:
        tool = SearchTool(library := Library(), 2, min_certainty=0.6)
        tool.reranker = await sync_to_async(reranker)(server.url, rerank_count=12)
        await tool.execute({"query": "birds"})

    assert (library.requests[0].top_k, library.requests[0].min_certainty) == (12, 0.6)


def test_it_is_off_by_default_and_a_disabled_model_is_named():
    assert reranking.from_row(ToolRegistration(name="search")) is None
    make_model("old", "openai/old", enabled=False)

    found = reranking.from_row(ToolRegistration(name="search", rerank_model="old"))

    assert found.why == "The model old is disabled."


class Spending(CallContext):
    def __init__(self):
        self.used, self.ordered = [], ()

    def report_usage(self, usage):
        self.used.append(usage)

    def report_reranking(self, model, problem=""):
        self.ordered = (model, problem)


async def spent(reply):
    async with WireServer([reply] * 3) as server:
        with use_context(context := Spending()):
            await search(server.url, rerank_seconds=0.5)
    return context.used


async def test_the_tokens_of_a_reranking_count_for_the_run():
    [used] = await spent(say("[2, 1, 3]"))

    assert used == {"model": "judge", **USAGE, "cost": None, "estimated": False}


async def test_a_reranking_that_took_too_long_counts_with_estimated_tokens():
    [used] = await spent(hang(say("[2, 1]"), after=0))

    assert used["estimated"]
    assert used["prompt_tokens"] > 40


async def test_a_rejected_reranking_costs_nothing():
    assert await spent(fail(401, "Wrong key")) == []


@pytest.mark.parametrize(
    ("reply", "known", "sentence"),
    [
        (say("[2, 1, 3]"), ("judge", ""), "RE-RANKED BY judge."),
        (
            say("No."),
            ("", Sentence("%(model)s returned no ranking.", model="judge")),
            "NOT RE-RANKED: judge RETURNED NO RANKING.",
        ),
    ],
)
async def test_the_step_says_in_the_readers_language_who_ordered_it(reply, known, sentence):
    async with WireServer([reply] * 3) as server:
        with use_context(context := Spending()):
            await search(server.url)
    facts = {"kind": StatusKind.RERANKED, "model": known[0], "message": known[1]}

    assert context.ordered == known
    with (
        patch("agents.db.sentences.gettext", shout),
        patch("agents.web.presentation.steps.step_notes._", shout),
    ):
        assert step_notes.note_sentence(facts) == sentence


def shout(sentence):
    """Return it in another language: upper case, except for placeholders."""
    parts = re.split(r"(%\(\w+\)s)", sentence)
    return "".join(part if part.startswith("%(") else part.upper() for part in parts)
