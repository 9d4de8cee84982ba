"""Runs whose tools have a cache: the trace says where a result comes from."""

import pytest
from asgiref.sync import sync_to_async

from agents.catalog.agent_factory import result_caches
from agents.engine.testing import Says
from agents.metering.caches import GROUPS
from agents.models import AgentTool, CacheEntry, CacheUsage
from agents.tools.egress import Response
from agents.web.presentation.steps import step_notes
from tests.conftest import as_user, run_question

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("run_executor"),
]

READ, WRITE, DONE = (
    Says.call("weather", city="Oslo"),
    Says.call("report", city="Oslo"),
    Says(answer="Rain."),
)


@pytest.fixture
def fetched(monkeypatch):
    calls = []

    async def fetch(method, url, **about):
        calls.append((method, url))
        return Response(status=200, headers={"content-type": "text/plain"}, content=b"rain")

    monkeypatch.setattr("agents.tools.http.tool.fetch", fetch)
    return calls


@pytest.fixture
def tools(agent, http_tool, fetched):
    city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    http_tool.definition = {"description": "Weather.", "parameters": city}
    http_tool.save()
    writer = type(http_tool).objects.create(
        name="report",
        source="http",
        endpoint="https://example.com/reports",
        definition={"description": "Reports.", "parameters": city},
        approval="never",
        effect="idempotent",
    )
    for row in (http_tool, writer):
        AgentTool.objects.create(agent=agent, tool=row)
    GROUPS.refresh()
    return fetched


async def test_a_second_run_gets_the_saved_result_and_its_step_says_so(tools, scripted, person):
    scripted(*[READ, DONE] * 2)
    await run_question("Weather?", user=person, topic="chat.1")

    run = await run_question("And now?", user=person, topic="chat.2")

    step = await run.steps.aget(kind="tool")
    assert len(tools) == 1
    assert (step.observation, step.attempts) == ("rain", 0)
    assert step_notes.note_sentence(step.notes[0]).startswith("From cache (no cost): saved ")
    assert "from cache" in await sync_to_async(trace_page)(run, person)


def trace_page(run, person):
    client = as_user(person)
    return client.get(f"/traces/{run.pk}/").text


async def test_a_write_to_the_same_host_evicts_the_saved_result(tools, scripted, person):
    scripted(READ, WRITE, READ, DONE)

    await run_question("Weather?", user=person)

    assert [method for method, _ in tools] == ["GET", "POST", "GET"]


async def test_an_agent_that_saves_no_personal_data_saves_no_results(
    tools, scripted, person, agent
):
    agent.personal_data = "unkept"
    await agent.asave()
    scripted(READ, READ, DONE)
    await run_question("Weather?", user=person)

    assert not await CacheEntry.objects.aexists()


async def test_without_a_cache_a_run_asks_nothing_about_caches(agent, scripted, monkeypatch):
    def fail(*_):
        raise AssertionError("asked")

    monkeypatch.setattr(result_caches, "_may_cache", fail)
    scripted(Says.call("calculator", expression="6 * 7"), Says(answer="42"))

    assert (await run_question("6 * 7")).answer == "42"
    assert not await CacheUsage.objects.aexists()
