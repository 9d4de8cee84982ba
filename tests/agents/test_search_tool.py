import pytest

from agents.engine.tool import Tool
from agents.tools.search import Passage, SearchTool

SECRETS = Passage(
    document="Handbook",
    source="security.md",
    heading="Security › Secrets",
    chunk=4,
    text="Secrets are rotated every month.\n",
    score=0.9,
)
KEYS = Passage(
    document="鍵", source="keys.md", heading="", chunk=1, text="鍵は金庫に。", lang="ja"
)


def fake_search(*passages):
    asked = []

    async def search(query, top_k):
        asked.append((query, top_k))
        return list(passages)

    return search, asked


async def test_each_passage_names_the_chunk_it_comes_from():
    search, _ = fake_search(SECRETS, KEYS)

    result = await SearchTool(search).execute({"query": "secrets"})

    assert result.output == (
        "[1] Handbook › Security › Secrets (security.md #4)\n"
        "Secrets are rotated every month.\n\n"
        "[2] 鍵 (keys.md #1)\n"
        "鍵は金庫に。"
    )


async def test_five_passages_are_asked_for_and_no_more_are_shown():
    search, asked = fake_search(*[SECRETS] * 9)

    result = await SearchTool(search).execute("  secrets ")

    assert asked == [("secrets", 5)]
    assert "[5]" in result.output
    assert "[6]" not in result.output


async def test_finding_nothing_is_not_an_error():
    search, _ = fake_search()

    result = await SearchTool(search).execute({"query": "unicorns"})

    assert not result.is_error
    assert "No passages found for 'unicorns'" in result.output


@pytest.mark.parametrize("input", ["", "  \n", {}, {"query": ""}, {"query": "x" * 2_001}])
async def test_an_invalid_query_is_an_error_the_model_can_fix(input):
    search, asked = fake_search(SECRETS)

    result = await SearchTool(search).execute(input)

    assert result.is_error
    assert result.mendable
    assert not asked


@pytest.mark.parametrize("query", ['"', "a* NEAR b", "title:x", "100%", "'; DROP TABLE --"])
async def test_search_operators_are_plain_words(query):
    search, asked = fake_search(SECRETS)

    await SearchTool(search, top_k=3).execute({"query": query})

    assert asked == [(query, 3)]


async def test_a_failing_search_raises_to_the_tool_runner():
    async def broken(query, top_k):
        raise ConnectionError("no index")

    with pytest.raises(ConnectionError):
        await SearchTool(broken).execute({"query": "secrets"})


def test_the_search_tool_has_the_tool_interface():
    assert isinstance(SearchTool(fake_search()[0]), Tool)
