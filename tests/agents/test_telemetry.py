"""Runs are reported to configured sinks, and never wait for them."""

import json
import logging
import sys
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from asgiref.sync import sync_to_async
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from agents import runs
from agents.catalog import tool_factory
from agents.engine.errors import ModelError
from agents.engine.events import Event, EventFactory, EventType
from agents.engine.testing import Says
from agents.engine.tool import ToolResult
from agents.models import Agent, Approval, Run
from agents.observability import log_sinks, telemetry
from agents.observability.otlp import EPOCH, Exporter
from agents.observability.spans import (
    SpanBuilder,
    SpanEvent,
    TraceIdentity,
    TraceSpan,
    TraceSpanKind,
)
from agents.review import reruns
from agents.runs import approvals, event_store, event_writer
from agents.runs.approvals import Decision
from project.environment import Environment
from tests.collector import Collector
from tests.conftest import run_question

CALL = Says.call("calculator", "I need to calculate.", input="6 * 7")
SECRET = "sk-abcdef0123456789"


@pytest.fixture
def collector(monkeypatch):
    monkeypatch.setattr(telemetry, "FLUSH_SECONDS", 0.02)
    with Collector() as collector:
        yield collector


@pytest.fixture
def impatient(monkeypatch):
    """Don't retry an unavailable receiver."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.5")


@pytest.fixture
def listening():
    """Start telemetry for a test, and stop it afterwards."""

    def start(**settings):
        telemetry.start(Environment(**settings))

    yield start
    telemetry.stop()
    assert event_writer.readers == []


rows = pytest.mark.django_db(transaction=True)
with_agent = pytest.mark.usefixtures("agent", "run_executor")


def test_a_span_arrives_with_all_that_it_says(collector):
    def at(microseconds):
        return EPOCH + timedelta(microseconds=microseconds)

    note = SpanEvent(name="status", time=at(1763200000500000), attributes={"kind": "retry"})
    span = TraceSpan(
        trace=bytes(range(16)),
        id=bytes(range(8)),
        parent=bytes(range(8, 16)),
        name="chat 足跡",
        kind=TraceSpanKind.CLIENT,
        began=at(1763200000123456),
        ended=at(1763200001000000),
        attributes={
            "text": "a" * 200,
            "yes": True,
            "no": False,
            "count": 300,
            "less": -1,
            "cost": 0.25,
            "reasons": ["stop", "length"],
        },
        notes=[note],
        failure="The call failed.",
    )

    exporter = Exporter(collector.url, {}, {"service.name": "ashiato"})
    assert exporter.send([span])
    exporter.close()

    [told] = collector.spans
    assert told == {
        "trace": bytes(range(16)).hex(),
        "id": bytes(range(8)).hex(),
        "parent": bytes(range(8, 16)).hex(),
        "name": "chat 足跡",
        "kind": 3,
        "began": 1763200000123456000,
        "ended": 1763200001000000000,
        "attributes": span.attributes,
        "notes": [("status", {"kind": "retry"})],
        "status": 2,
        "message": "The call failed.",
    }
    assert collector.resource == {"service.name": "ashiato"}


def test_half_a_character_costs_no_batch(collector):
    exporter = Exporter(collector.url, {}, {})
    half = replace(span(), name="chat \ud83d", attributes={"text": "\ud83d", "all": ["\ud83d"]})

    assert exporter.send([half])
    exporter.close()

    [told] = collector.spans
    assert (told["name"], told["attributes"]) == ("chat ?", {"text": "?", "all": ["?"]})


@pytest.mark.parametrize("variable", ["ENDPOINT", "TRACES_ENDPOINT"])
def test_the_standard_variables_of_opentelemetry_are_used(collector, monkeypatch, variable):
    path = "/v1/traces" if variable == "TRACES_ENDPOINT" else ""
    monkeypatch.setenv(f"OTEL_EXPORTER_OTLP_{variable}", collector.url + path)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=abc")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "ours")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")

    [sink] = telemetry._create_sinks(Environment())
    assert sink.exporter.send([span()])
    sink.close()

    assert collector.paths == ["/v1/traces"]
    assert (collector.headers["x-key"], collector.headers["content-encoding"]) == (
        "abc",
        "gzip",
    )
    assert collector.resource["service.name"] == "ours"
    assert collector.resource["deployment.environment"] == "test"


@pytest.mark.parametrize(
    ("name", "value"), [("OTEL_SDK_DISABLED", "TRUE"), ("OTEL_TRACES_EXPORTER", "none")]
)
def test_the_standard_variables_of_opentelemetry_switch_it_off(monkeypatch, name, value):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    assert Environment().sends_spans
    monkeypatch.setenv(name, value)

    assert not Environment().sends_spans


def test_without_the_exporter_a_sentence_says_what_to_install(monkeypatch, caplog):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, OTLPSpanExporter.__module__, None)
    monkeypatch.delitem(sys.modules, "agents.observability.otlp")

    assert telemetry._create_sinks(Environment()) == []
    [record] = caplog.records
    assert record.getMessage().endswith("is missing. Run: make otlp")


def test_without_the_exporter_an_endpoint_of_ours_stops_the_start(monkeypatch):
    monkeypatch.setattr("project.environment.find_spec", lambda name: None)

    with pytest.raises(ValueError, match=r"until OpenTelemetry is installed \(make otlp\)"):
        Environment(otlp_endpoint="http://127.0.0.1:9")


@rows
@with_agent
async def test_a_run_arrives_at_a_collector_span_by_span(collector, listening, scripted):
    listening(otlp_endpoint=collector.url, otlp_headers="x-key=abc, x-team = ours ")
    scripted(CALL, Says(answer="It is 42."))

    run = await run_question("What is it?")
    await sync_to_async(telemetry.stop)()

    root = collector.named("invoke_agent helper")
    first, second = [span for span in collector.spans if span["name"] == "chat demo"]
    tool = collector.named("execute_tool calculator")
    assert {span["trace"] for span in collector.spans} == {telemetry.trace_id(run)}
    assert root["parent"] == ""
    assert {span["parent"] for span in (first, second, tool)} == {root["id"]}
    assert root["began"] <= first["began"] <= first["ended"] <= tool["ended"] <= root["ended"]
    assert (root["kind"], first["kind"], tool["kind"]) == (1, 3, 1)
    assert collector.paths[0] == "/v1/traces"
    assert collector.headers["content-type"] == "application/x-protobuf"
    assert (collector.headers["x-key"], collector.headers["x-team"]) == ("abc", "ours")
    assert collector.resource["service.name"] == "ashiato"


@rows
@with_agent
async def test_spans_say_what_the_conventions_ask_for_and_no_content(
    collector, listening, scripted
):
    listening(otlp_endpoint=f"{collector.url}/v1/traces")
    scripted(CALL, Says(answer="It is 42."))

    run = await run_question("What is it?")
    await sync_to_async(telemetry.stop)()

    chat = [span for span in collector.spans if span["name"] == "chat demo"][0]["attributes"]
    assert chat["gen_ai.operation.name"] == "chat"
    assert chat["gen_ai.provider.name"] == chat["gen_ai.system"] == "ashiato"
    assert chat["gen_ai.request.model"] == chat["gen_ai.response.model"] == "demo"
    assert chat["gen_ai.usage.input_tokens"] > 0
    assert chat["gen_ai.usage.output_tokens"] > 0
    assert chat["gen_ai.conversation.id"] == run.topic
    tool = collector.named("execute_tool calculator")["attributes"]
    assert tool["gen_ai.tool.name"] == "calculator"
    assert tool["gen_ai.tool.call.id"] == "c0"
    assert collector.named("invoke_agent helper")["attributes"]["gen_ai.agent.name"] == "helper"
    everything = json.dumps(collector.spans)
    assert not [w for w in ("What is it", "6 * 7", "It is 42", "calculate.") if w in everything]


@rows
@with_agent
async def test_contents_are_sent_where_that_is_wanted_without_secrets(
    collector, listening, scripted
):
    listening(otlp_endpoint=collector.url, otlp_content=True)
    scripted(CALL, Says(answer="It is 42."))

    await run_question(f"What is it? My key is {SECRET}.")
    await sync_to_async(telemetry.stop)()

    root = collector.named("invoke_agent helper")["attributes"]
    assert json.loads(root["gen_ai.output.messages"])[0]["parts"][0]["content"] == "It is 42."
    tool = collector.named("execute_tool calculator")["attributes"]
    assert json.loads(tool["gen_ai.tool.call.arguments"]) == {"input": "6 * 7"}
    assert tool["gen_ai.tool.call.result"] == "42"
    last = [span for span in collector.spans if span["name"] == "chat demo"][-1]["attributes"]
    roles = [message["role"] for message in json.loads(last["gen_ai.input.messages"])]
    assert roles == ["system", "user", "assistant", "tool"]
    assert SECRET not in json.dumps(collector.spans)


@rows
@with_agent
@pytest.mark.parametrize("is_sent", [False, True])
async def test_personal_data_is_sent_only_where_that_is_wanted(
    collector, listening, scripted, is_sent
):
    listening(otlp_endpoint=collector.url, otlp_content=True, otlp_personal=is_sent)
    mail = "ada@example.com"
    call = Says.call("calculator", f"I ask {mail}.", input=f"{mail} + 1")
    scripted(call, Says(answer=f"Write to {mail}."))

    await run_question(f"Who is {mail}?")
    await sync_to_async(telemetry.stop)()

    everything = json.dumps(collector.spans, ensure_ascii=False)
    assert (mail in everything) == is_sent
    assert ("Write to ‹email›." in everything) == (not is_sent)


@rows
@with_agent
async def test_a_failure_is_an_error_of_its_span_and_of_the_run(collector, listening, scripted):
    listening(otlp_endpoint=collector.url)
    scripted(Says.call("nothing"), ModelError("The provider refused."))

    await run_question("What is it?")
    await sync_to_async(telemetry.stop)()

    tool = collector.named("execute_tool nothing")
    assert (tool["status"], tool["attributes"]["error.type"]) == (2, "tool_error")
    failed = [span for span in collector.spans if span["name"] == "chat demo"][-1]
    assert (failed["status"], failed["message"]) == (2, "The provider refused.")
    root = collector.named("invoke_agent helper")
    assert (root["status"], root["attributes"]["error.type"]) == (2, "ModelError")


@rows
@with_agent
async def test_what_one_agent_does_for_another_is_below_the_call(
    collector, listening, scripted
):
    listening(otlp_endpoint=collector.url)
    helper = await Agent.objects.aget()
    other = await Agent.objects.acreate(name="counter", model=helper.model)
    await helper.handoffs.aadd(other)
    scripted(Says.call("ask_counter", task="Count."), Says(answer="3."), Says(answer="Three."))

    await run_question("How many?")
    await sync_to_async(telemetry.stop)()

    call = collector.named("execute_tool ask_counter")
    errand = collector.named("invoke_agent counter")
    assert errand["parent"] == call["id"]
    inner = [span for span in collector.spans if span["parent"] == errand["id"]]
    assert [span["name"] for span in inner] == ["chat demo"]


class Letter:
    name, description, needs_approval = "calculator", "Writes.", True
    parameters = {"type": "object", "properties": {"input": {"type": "string"}}}

    async def execute(self, input):
        return ToolResult("Sent.")


@rows
@with_agent
async def test_a_run_gone_on_with_by_another_process_goes_on_with_its_trace(
    collector, listening, scripted, monkeypatch, person
):
    monkeypatch.setitem(tool_factory.BUILT_IN_TOOLS, "calculator", Letter)
    scripted(CALL, Says(answer="It is written."))
    listening(otlp_endpoint=collector.url)
    run = await run_question("Write to her.", user=person)
    await sync_to_async(telemetry.stop)()
    assert [span["name"] for span in collector.spans] == ["chat demo"]

    listening(otlp_endpoint=collector.url)
    question = await Approval.objects.aget(run=run)
    await approvals.decide(
        person, question.pk, Decision(digest=question.digest, is_approved=True)
    )
    await runs.wait(run)
    await sync_to_async(telemetry.stop)()

    names = [span["name"] for span in collector.spans]
    later = ["execute_tool calculator", "chat demo", "invoke_agent helper"]
    assert names == ["chat demo", *later]
    root = collector.named("invoke_agent helper")
    assert {span["trace"] for span in collector.spans} == {telemetry.trace_id(run)}
    assert collector.spans[0]["parent"] == collector.spans[2]["parent"] == root["id"]
    notes = [name for name, _about in root["notes"]]
    assert notes == ["approval_requested", "run_paused", "approval_resolved"]


@rows
@with_agent
async def test_what_did_not_fit_into_the_queue_is_read_from_the_rows(
    collector, listening, scripted, monkeypatch
):
    listening(otlp_endpoint=collector.url)
    [reader] = telemetry._readers
    heard = []
    monkeypatch.setattr(event_writer, "readers", [lambda *told: heard.append(told)])
    scripted(CALL, Says(answer="It is 42."))
    await run_question("What is it?")
    monkeypatch.undo()

    reader.on_events(*heard[0])
    reader.on_events(*heard[-1])
    await sync_to_async(telemetry.stop)()

    names = [span["name"] for span in collector.spans]
    assert sorted(set(names)) == [
        "chat demo",
        "execute_tool calculator",
        "invoke_agent helper",
    ]


def test_a_reader_that_is_far_behind_misses_something_and_holds_up_nobody(monkeypatch):
    class Slow:
        is_full, with_content = False, True

        def take(self, run, events):
            time.sleep(0.2)

        flush = close = lambda self: None

    monkeypatch.setattr(telemetry, "MAX_QUEUED", 2)
    reader = telemetry.SinkWorker(Slow())
    began = time.monotonic()

    for _ in range(1000):
        reader.on_events(None, [Event(type=EventType.STATUS)])

    assert time.monotonic() - began < 2
    assert reader.missed >= 997
    reader.leave()


class Held:
    """A sink that accepts nothing until released."""

    is_full = False

    def __init__(self, *, with_content):
        self.with_content = with_content
        self.go, self.taken = threading.Event(), []

    def take(self, run, events):
        self.go.wait(10)
        self.taken += events

    flush = close = lambda self: None


def test_what_waits_is_bounded_by_its_size_and_what_was_missed_is_said_once(
    monkeypatch, caplog
):
    monkeypatch.setattr(telemetry, "MAX_QUEUED_BYTES", 100_000)
    sink = Held(with_content=True)
    reader = telemetry.SinkWorker(sink)

    for seq in range(50):
        said = {"content": "x" * 10_000, "seq": seq}
        reader.on_events(None, [Event(type=EventType.TOOL_RESPONSE, data=said)])

    assert reader.bytes <= 100_000
    assert reader.missed == 41
    sink.go.set()
    reader.leave()
    assert (len(sink.taken), reader.bytes) == (9, 0)
    assert [record.getMessage() for record in caplog.records] == [
        "The telemetry queue is full. Some events are dropped.",
        "The telemetry queue has drained. 41 events were dropped.",
    ]


def test_contents_that_are_not_passed_on_do_not_wait_either():
    sink = Held(with_content=False)
    reader = telemetry.SinkWorker(sink)
    data = {
        "step": 1,
        "request": {"model": "demo", "messages": [{"content": "x" * 10**6}] * 99},
    }

    reader.on_events(None, [Event(type=EventType.STEP_STARTED, data=data)])

    assert reader.bytes < 100_000
    sink.go.set()
    reader.leave()
    [event] = sink.taken
    assert (event.data["step"], event.data["request"]["model"]) == (1, "demo")


def span():
    now = datetime.now(UTC)
    return TraceSpan(trace=b"t" * 16, id=b"i" * 8, name="chat demo", began=now, ended=now)


def test_a_monitor_that_is_busy_is_asked_again(collector):
    collector.answers = [503, 429]
    exporter = Exporter(collector.url, {}, {})

    assert exporter.send([span()])
    exporter.close()

    assert len(collector.paths) == 3
    assert (len(collector.spans), exporter.lost) == (1, 0)


def test_a_monitor_that_is_away_costs_one_warning_and_is_counted(caplog, impatient):
    with Collector() as collector:
        port = collector.server.server_port
    exporter = Exporter(collector.url, {}, {})

    assert not exporter.send([span(), span()])
    assert not exporter.send([span()])
    assert exporter.lost == 3
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "Can't send spans to 127.0.0.1: " in caplog.text

    with Collector(port=port):
        assert exporter.send([span()])
    exporter.close()
    assert "accepts spans again. 3 spans were lost" in caplog.text


def test_what_a_monitor_refuses_for_good_is_not_sent_again(collector, caplog):
    collector.answers = [401]
    exporter = Exporter(collector.url, {}, {})

    with caplog.at_level("WARNING"):
        assert not exporter.send([span()])
    exporter.close()

    assert len(collector.paths) == 1
    assert "401" in caplog.text


@rows
@with_agent
@pytest.mark.usefixtures("impatient")
async def test_a_run_is_answered_though_the_monitor_is_away(listening, scripted):
    listening(otlp_endpoint="http://127.0.0.1:9")
    scripted(Says(answer="It is 42."))

    run = await run_question("What is it?")

    assert (run.status, run.answer) == ("completed", "It is 42.")


def lines(path):
    return [json.loads(text) for text in path.read_text().splitlines()]


@rows
@with_agent
async def test_a_file_has_a_line_for_every_start_call_and_end(listening, scripted, tmp_path):
    path = tmp_path / "logs" / "trace.jsonl"
    listening(trace_file=path)
    scripted(CALL, Says(answer="It is 42."))

    run = await run_question("What is it?")
    await sync_to_async(telemetry.stop)()

    written = lines(path)
    assert [(line["type"], line["level"]) for line in written] == [
        ("run_started", "info"),
        ("step", "info"),
        ("tool_call", "info"),
        ("tool_response", "info"),
        ("step", "info"),
        ("step", "info"),
        ("run_finished", "info"),
    ]
    assert {(line["run"], line["agent"]) for line in written} == {(run.pk, "helper")}
    assert written[2]["tool"] == "calculator"
    assert written[-1]["stopped_reason"] == "completed"
    text = path.read_text()
    assert not [w for w in ("What is it", "6 * 7", "It is 42", "calculate.") if w in text]


@rows
@with_agent
async def test_at_debug_there_is_everything_but_words_and_no_secret(
    listening, scripted, tmp_path, capfd
):
    listening(trace_console="debug")
    scripted(CALL, Says(answer="It is 42."))

    await run_question(f"What is it? My key is {SECRET}.")
    await sync_to_async(telemetry.stop)()

    text = capfd.readouterr().err
    types = {json.loads(line)["type"] for line in text.splitlines()}
    assert {"usage", "step_started", "thought", "run_finished"} <= types
    assert not types & {"delta", "thought_delta"}
    assert "6 * 7" in text
    assert SECRET not in text


LEVELS = {
    "error": [("error", {"message": "No.", "type": "ModelError"})],
    "warning": [
        ("guardrail", {"action": "warn", "reason": "It matches."}),
        ("status", {"kind": "model_fallback", "from": "a", "to": "b", "message": "No."}),
        ("status", {"kind": "retry", "message": "No.", "seconds": 1, "attempt": 2}),
        ("run_finished", {"stopped_reason": "blocked", "detail": "It matches."}),
    ],
    "info": [
        ("handoff", {"query": "Count.", "model": "demo", "parent": 2}),
        ("approval_requested", {"function": {"name": "mail", "arguments": "{}"}, "step": 2}),
    ],
    "debug": [("usage", {"prompt_tokens": 1, "step": 1})],
}


@pytest.mark.parametrize(
    ("level", "type", "data"),
    [(level, *event) for level, events in LEVELS.items() for event in events],
)
def test_events_are_told_from_the_level_at_which_they_matter(level, type, data, tmp_path):
    order = list(LEVELS)
    event = EventFactory("helper")(EventType(type), **data)

    for at in order:
        path = tmp_path / at
        sink = log_sinks.LogSink.to_file(path, at)
        sink.take(SimpleNamespace(pk=7), [event])
        sink.close()
        assert (path.read_text() != "") == (order.index(at) >= order.index(level)), at


def test_a_failed_call_and_a_failed_run_are_errors():
    stamp = EventFactory("helper")
    failed = [
        stamp(EventType.TOOL_RESPONSE, is_error=True),
        stamp(EventType.RUN_FINISHED, stopped_reason="error"),
    ]

    assert [log_sinks.event_level(event) for event in failed] == [logging.ERROR, logging.ERROR]


def test_what_a_person_wrote_is_content():
    stamp = EventFactory("helper")
    event = stamp(
        EventType.APPROVAL_RESOLVED, is_approved=False, reason="Call 090-1234", step=2
    )

    assert "090" not in log_sinks.format_line(7, event, logging.INFO)
    assert "090" in log_sinks.format_line(7, event, logging.DEBUG, with_content=True)


def test_a_file_is_turned_over_when_it_is_large(tmp_path, monkeypatch):
    monkeypatch.setattr(log_sinks, "MAX_FILE_BYTES", 2000)
    sink = log_sinks.LogSink.to_file(tmp_path / "{pid}.jsonl", "info")
    event = EventFactory("helper")(EventType.RUN_PAUSED, reason="approval")

    for _ in range(100):
        sink.take(SimpleNamespace(pk=7), [event])
    sink.close()

    files = list(tmp_path.iterdir())
    assert len(files) == 1 + log_sinks.BACKUP_COUNT
    assert all(file.stat().st_size <= 2000 for file in files)


@rows
@with_agent
async def test_what_a_run_again_repeats_is_in_the_trace_of_its_origin_only(
    collector, listening, scripted, person
):
    listening(otlp_endpoint=collector.url, otlp_content=True)
    scripted(CALL, Says(answer="It is 42."), Says(answer="42."))
    origin = await run_question("What is it?", user=person)

    def again():
        run = Run.objects.select_related("agent").get(pk=origin.pk)
        return reruns.prepare(run, 3, reruns.RerunSetup(run).before, person)

    run = await sync_to_async(again)()
    runs.resume(run)
    await runs.wait(run)
    await sync_to_async(telemetry.stop)()

    mine = [span for span in collector.spans if span["trace"] == telemetry.trace_id(run)]
    assert [span["name"] for span in mine] == ["chat demo", "invoke_agent helper"]
    sent = json.loads(mine[0]["attributes"]["input.value"])
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool"]


def test_nobody_hears_of_anything_unless_that_is_set_up():
    assert not log_sinks.is_enabled(Environment())
    assert event_writer.readers == []
    for wish in ({"otlp_endpoint": "http://a"}, {"trace_console": "info"}):
        assert log_sinks.is_enabled(Environment(**wish))


@rows
def test_the_spans_of_a_run_that_was_cut_off_end_with_it():
    run = Run.objects.create(topic="chat.1", query="?", agent_name="helper")
    subject = TraceIdentity(number=run.pk, topic=run.topic, began=run.started_at)
    stamp, course = EventFactory("helper"), SpanBuilder(subject)
    asks = {"turn": 1, "kind": "thought", "request": {"model": "openai/gpt"}}
    events = [
        stamp(EventType.RUN_STARTED, model="openai/gpt", query="?"),
        stamp(EventType.STEP_STARTED, step=1, **asks),
    ]
    event_store.save([(run.pk, event) for event in events])
    ending = event_store.close(run.pk, event_store.Ending(event_store.StopReason.INTERRUPTED))

    over = [span for event in [*events, *ending] for span in course.take(event)]

    assert [span.name for span in over] == ["chat openai/gpt", "invoke_agent helper"]
    assert over[0].attributes["gen_ai.provider.name"] == "openai"
    assert over[1].attributes["error.type"] == "interrupted"
