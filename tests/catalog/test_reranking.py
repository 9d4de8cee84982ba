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
from agents.models import LanguageModel, ToolRegistration
from agents.tools.search import WEAK_PROMPT, SearchResult, SearchTool
from agents.web.presentation.steps import step_notes
from tests.language_models import make_model
from tests.wire import USAGE, WireServer, fail, hang, say

PASSAGES = [
    Passage(title=name, path=f"{name}.md", ordinal=1, text=f"About {name}s.")
    for name in ("heron", "stork", "crane")
]


class Library:
    """A library that returns the same passages for every question, as certain as it is told."""

    def __init__(self, confidence="good"):
        self.confidence = confidence
        self.requests = []

    async def search(self, request):
        self.requests.append(request)
        return SearchResult(
            passages=[] if self.confidence == "none" else PASSAGES,
            candidates=PASSAGES,
            confidence=self.confidence,
            certainty={"good": 0.8, "weak": 0.3, "none": 0.01}[self.confidence],
            searched=["Birds"],
        )


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


@pytest.fixture(autouse=True)
def nothing_is_saved():
    reranking.JUDGMENTS.clear()
    reranking.PAUSED_UNTIL.clear()


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

    [request] = library.requests
    assert (request.top_k, request.candidates, request.min_certainty) == (2, 12, 0.6)


async def search_with_own_model(server, library):
    if not await LanguageModel.objects.filter(label="own").aexists():
        address = {"base_url": server.url, "api_key": "sk-test"}
        await sync_to_async(make_model)("own", "openai/own", **address)
    tool = SearchTool(library, 2)
    tool.reranker = await sync_to_async(reranking.by_own_model)("own")
    return await tool.execute({"query": "Which bird brings babies?"})


async def test_the_agents_own_model_is_asked_only_where_the_search_is_uncertain():
    async with WireServer([say('{"best": [2]}')]) as server:
        certain = await search_with_own_model(server, Library("good"))
        asked_first = len(server.requests)
        tool_result = await search_with_own_model(server, Library("weak"))

    assert asked_first == 0
    assert certain.note == ""
    assert [source.title for source in tool_result.sources] == ["stork", "heron"]
    assert WEAK_PROMPT not in tool_result.output


async def test_what_a_search_withheld_is_given_if_the_model_says_that_it_helps():
    async with WireServer([say('{"best": [3]}')]) as server:
        tool_result = await search_with_own_model(server, Library("none"))

    assert [source.title for source in tool_result.sources] == ["crane", "heron"]


async def test_if_nothing_helps_the_models_own_words_are_searched_once():
    library = Library("weak")
    reply = say('```json\n{"best": [], "queries": ["stork delivery", "", 7]}\n```')
    async with WireServer([reply]) as server:
        tool_result = await search_with_own_model(server, library)

    assert [request.queries for request in library.requests] == [(), ("stork delivery",)]
    assert WEAK_PROMPT in tool_result.output
    assert len(server.requests) == 1


async def test_an_equal_search_soon_after_is_not_asked_again():
    async with WireServer([say('{"best": [2]}')]) as server:
        for _ in range(2):
            tool_result = await search_with_own_model(server, Library("weak"))

    assert len(server.requests) == 1
    assert [source.title for source in tool_result.sources] == ["stork", "heron"]


@pytest.mark.parametrize("reply", [say("I can't decide."), hang(say("{}"), after=0)])
async def test_an_own_model_that_cannot_do_it_is_not_asked_for_a_while(reply, monkeypatch):
    monkeypatch.setattr(reranking, "OWN_SECONDS", 0.5)
    async with WireServer([reply] * 3) as server:
        first = await search_with_own_model(server, Library("weak"))
        second = await search_with_own_model(server, Library("weak"))

    assert first.note.startswith("Not re-ranked: ")
    assert second.note == ""
    assert [source.title for source in second.sources] == ["heron", "stork"]
    assert len(server.requests) == 1


async def test_a_chosen_model_is_not_paid_for_what_is_withheld():
    async with WireServer([say("[2, 1]")]) as server:
        tool = SearchTool(Library("none"), 2)
        tool.reranker = await sync_to_async(reranker)(server.url)
        tool_result = await tool.execute({"query": "birds"})

    assert server.requests == []
    assert not tool_result.sources


def test_the_rule_based_model_orders_nothing():
    assert reranking.by_own_model("demo") is None


def test_without_a_choice_no_other_model_is_asked_and_a_disabled_one_is_named():
    assert reranking.from_row(ToolRegistration(name="search")) is None
    assert reranking.from_row(ToolRegistration(name="search", rerank_model="off")) is None
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
