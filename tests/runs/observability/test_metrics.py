"""Metrics of what was saved, for authorized monitors, without users' text."""

import logging
import urllib.request
from urllib.error import HTTPError

import pytest
from asgiref.sync import sync_to_async
from channels.testing import HttpCommunicator
from django.db import OperationalError
from django.test import AsyncClient
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families
from pydantic import SecretStr

from agents.catalog.tools import tool_factory
from agents.engine.errors import ModelError
from agents.engine.events import Event, EventType, mark_replayed
from agents.engine.testing import Says
from agents.engine.tool import ToolResult
from agents.models import McpServer, Run, ToolRegistration
from agents.review.annotations import examples
from agents.runs import event_writer
from agents.runs.observability import metrics, process_status
from agents.runs.observability.counters import MAX_NAMES, EventCounters
from agents.runs.observability.loop_watchdog import Watchdog
from agents.tools.calculator import CalculatorTool
from project.asgi import machine_routes
from tests.conftest import run_question

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("run_executor")]

TOKEN = "a long walk on the beach"


@pytest.fixture
def registry(monkeypatch):
    registry = CollectorRegistry()
    monkeypatch.setattr(event_writer, "readers", [EventCounters(registry).on_events])
    return registry


@pytest.fixture
def opened(settings):
    """Enable metrics, openly or with a token."""

    def open(token=None):
        update = {"metrics": True, "metrics_token": SecretStr(token) if token else None}
        settings.ENVIRONMENT = settings.ENVIRONMENT.model_copy(update=update)

    return open


async def scrape(*headers):
    request = HttpCommunicator(metrics.handle_request, "GET", "/metrics", headers=list(headers))
    response = await request.get_response(timeout=10)
    return response["status"], response["body"].decode()


def bearer(token):
    return b"authorization", f"Bearer {token}".encode()


def value(text, name, **labels):
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == name and sample.labels == labels:
                return sample.value
    return None


# Who may ask


async def test_the_endpoint_is_disabled_by_default():
    assert "metrics" not in {str(route.pattern) for route in machine_routes}
    assert (await AsyncClient().get("/metrics")).status_code == 404
    assert (await scrape())[0] == 401


async def test_the_token_gives_access(opened):
    opened(TOKEN)

    assert (await scrape(bearer(TOKEN)))[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [bearer("")],
        [bearer(TOKEN[:-1])],
        [bearer(TOKEN), bearer(TOKEN)],
        [(b"authorization", TOKEN.encode())],
        [(b"authorization", b"Bearer \xff\xfe")],
    ],
)
async def test_a_wrong_or_missing_token_is_rejected(opened, headers):
    opened(TOKEN)
    status, body = await scrape(*headers)

    assert status == 401
    assert "ashiato" not in body


async def test_a_public_endpoint_needs_no_token(opened):
    opened()
    status, body = await scrape()

    assert status == 200
    assert value(body, "ashiato_build_info", version=process_status.version()) == 1


# What is counted


async def test_a_run_is_counted_with_its_model_and_its_tools(registry, agent, scripted):
    scripted(Says.call("calculator", expression="6 * 7"), Says(answer="It is 42."))
    run = await run_question("6 * 7")

    figure = registry.get_sample_value
    assert run.status == "completed"
    assert figure("ashiato_runs_started_total") == 1
    assert figure("ashiato_runs_ended_total", {"status": "completed"}) == 1
    assert figure("ashiato_model_calls_total", {"model": run.model}) == 2
    assert figure("ashiato_tool_calls_total", {"tool": "calculator"}) == 1
    assert figure("ashiato_tool_errors_total", {"tool": "calculator"}) is None
    assert figure("ashiato_tool_seconds_count", {"tool": "calculator"}) == 1
    assert figure("ashiato_time_to_first_token_seconds_count", {"model": run.model}) >= 1
    tokens = {"model": run.model, "direction": "completion"}
    assert figure("ashiato_model_tokens_total", tokens) == run.completion_tokens
    assert figure("ashiato_events_saved_total") == await run.events.acount()


class Broken:
    """A failing tool with a fallback."""

    name, description, effect = "calculator", "Is down.", "read"
    parameters = CalculatorTool.parameters
    fallback_tool = "search"

    async def execute(self, input):
        raise ConnectionError("refused")


class Spare(Broken):
    name, fallback_tool = "search", None

    async def execute(self, input):
        return ToolResult("42")


async def test_calls_of_a_fallback_tool_are_not_counted_for_the_failed_tool(
    registry, agent, scripted, monkeypatch
):
    monkeypatch.setitem(tool_factory.BUILT_IN_TOOLS, "calculator", Broken)
    monkeypatch.setitem(tool_factory.BUILT_IN_TOOLS, "search", Spare)
    names = ["calculator", "search"]
    rows = [row async for row in ToolRegistration.objects.filter(name__in=names)]
    await agent.tools.aset(rows)
    rows = {row.name: row for row in rows}
    rows["calculator"].fallback = rows["search"]
    await rows["calculator"].asave()
    scripted(Says.call("calculator", expression="6 * 7"), Says(answer="42"))

    run = await run_question("6 * 7")

    figure = registry.get_sample_value
    assert figure("ashiato_tool_errors_total", {"tool": "calculator"}) == 1
    assert figure("ashiato_tool_seconds_count", {"tool": "calculator"}) is None
    assert figure("ashiato_tool_calls_total", {"tool": "search"}) == 1
    assert figure("ashiato_tool_errors_total", {"tool": "search"}) is None
    step = await run.steps.aget(kind="tool")
    assert (step.action, step.failed_tool, step.status) == ("search", "calculator", "done")
    [seen] = await sync_to_async(examples.observations)(run)
    assert seen["tool"] == "calculator"


async def test_invented_tool_names_are_not_labels(registry, agent, scripted):
    scripted(Says.call("ada_lovelace_1815"), Says(answer="There is no such tool."))
    await run_question("?")

    assert registry.get_sample_value("ashiato_tool_errors_total", {"tool": "other"}) == 1
    names = {s.labels.get("tool") for family in registry.collect() for s in family.samples}
    assert "ada_lovelace_1815" not in names


def test_the_number_of_labels_is_limited():
    registry = CollectorRegistry()
    tally = EventCounters(registry)
    for number in range(MAX_NAMES + 5):
        about = {"model": f"m{number}", "tools": []}
        turn = {"step": 1, "request": {"model": f"m{number}"}}
        events = [
            Event(type=EventType.RUN_STARTED, data=about),
            Event(type=EventType.STEP_STARTED, data=turn),
        ]
        tally.on_events(Run(pk=number), events)

    assert registry.get_sample_value("ashiato_model_calls_total", {"model": "other"}) == 5


def test_replayed_events_are_not_counted():
    registry = CollectorRegistry()
    begun = Event(type=EventType.RUN_STARTED, data={"model": "m", "tools": []})
    EventCounters(registry).on_events(Run(pk=1), [mark_replayed(begun)])

    assert registry.get_sample_value("ashiato_runs_started_total") == 0


def test_experiments_are_left_out_and_titles_are_counted():
    registry = CollectorRegistry()
    counters = EventCounters(registry)
    started = Event(type=EventType.RUN_STARTED, data={"model": "m", "tools": []})
    counters.on_events(Run(pk=1, topic="trial.experiment.1.a"), [started])
    counters.count_title({"model": "m", "prompt_tokens": 9, "completion_tokens": 2, "cost": 1})

    figure = registry.get_sample_value
    assert figure("ashiato_runs_started_total") == 0
    assert figure("ashiato_model_calls_total", {"model": "m"}) == 1
    prompt = {"model": "m", "direction": "prompt"}
    assert figure("ashiato_model_tokens_total", prompt) == 9


def test_an_event_that_cannot_be_counted_does_not_break_the_event_writer(caplog):
    EventCounters(CollectorRegistry()).on_events(
        Run(pk=7), [Event(type=EventType.USAGE, data={})]
    )

    assert "Can't update the metrics for run 7." in caplog.text


async def test_a_model_that_fails_is_counted(registry, agent, scripted):
    scripted(ModelError("It refused."))
    run = await run_question("?")

    assert run.status == "failed"
    figures = {"model": run.model}
    assert registry.get_sample_value("ashiato_model_errors_total", figures) == 1


# What the rows and the process say


async def test_gauges_show_live_and_waiting_runs_and_open_circuits(opened):
    opened()
    await Run.objects.acreate(topic="a", query="?", status="waiting")
    await McpServer.objects.acreate(name="files", state="failed")
    _, body = await scrape()

    assert value(body, "ashiato_runs_live", status="waiting") == 1
    assert value(body, "ashiato_runs_live", status="running") == 0
    assert value(body, "ashiato_mcp_server_state", server="files", state="failed") == 1
    assert value(body, "ashiato_approvals_pending") == 0
    assert value(body, "ashiato_database_up") == 1


async def test_process_metrics_work_without_the_database(opened, monkeypatch, caplog):
    def away():
        raise OperationalError("password of ada is wrong")

    opened()
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(Run.objects, "live", away)
    status, body = await scrape()

    assert status == 200
    assert value(body, "ashiato_database_up") == 0
    assert value(body, "process_resident_memory_bytes") > 0
    assert "ada" not in body


async def test_the_event_loop_lag_is_exported(opened, monkeypatch):
    opened()
    dog = Watchdog()
    try:
        monkeypatch.setattr(process_status, "_latest", process_status._collect_figures(dog))
        _, body = await scrape()
    finally:
        dog.stop()

    assert value(body, "ashiato_loop_lag_seconds") >= 0
    assert value(body, "ashiato_loop_stalls_total") == 0
    assert value(body, "ashiato_sockets") == 0
    assert value(body, "ashiato_event_lag_seconds") is not None


def test_a_worker_serves_metrics_on_its_own_port(opened):
    opened(TOKEN)
    server = metrics.listen("127.0.0.1", 0)
    try:
        address = f"http://127.0.0.1:{server.server_port}/metrics"
        with pytest.raises(HTTPError, match="401") as refused:
            urllib.request.urlopen(address, timeout=10)
        refused.value.close()
        request = urllib.request.Request(address, headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            body = answer.read().decode()
    finally:
        server.shutdown()
        server.server_close()

    assert "ashiato_runs_live" in body
