"""Passes the event stream to sinks: OpenTelemetry, the console, a file.

Each has its own thread and queue. A run passes on saved events and continues; what exceeds the
queue, by number or size, is dropped, and read from the rows where needed.
"""

import atexit
import logging
import sys
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from queue import Empty, Full, Queue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Protocol

from django.db import connection

from agents.access import masking
from agents.catalog.agent_factory import personal_data_policy
from agents.engine.events import Event
from agents.models import Agent, Run, RunEvent
from agents.runs import event_writer

from . import process_status
from .log_sinks import MAX_CONTENT_CHARS, LogSink
from .spans import SpanBuilder
from .trace_span import ContentFilter, TraceIdentity, TraceSpan

if TYPE_CHECKING:
    from .otlp import Exporter

logger = logging.getLogger(__name__)

MAX_QUEUED = 10_000
MAX_QUEUED_BYTES = 64 * 1024 * 1024
MAX_LIST_ITEMS = 20
VALUE_OVERHEAD_BYTES = 64  # rough overhead of any value
MAX_BATCH_SPANS = 200
MAX_OPEN_RUNS = 1_000
FLUSH_SECONDS = 0.5
STOP_TIMEOUT_SECONDS = 3.0

_workers: list["SinkWorker"] = []


class Sink(Protocol):
    with_content: bool

    @property
    def is_full(self) -> bool: ...
    def take(self, run: Run, events: Sequence[Event]) -> None: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...


def start(environment: Any) -> None:
    """Pass everything this process saves to the configured sinks."""
    for sink in _create_sinks(environment):
        worker = SinkWorker(sink)
        _workers.append(worker)
        event_writer.readers.append(worker.on_events)
    atexit.register(stop)


def stop() -> None:
    """Pass on what is queued, if that doesn't take long."""
    for worker in _workers:
        event_writer.readers.remove(worker.on_events)
        worker.leave()
    _workers.clear()
    atexit.unregister(stop)


def trace_id(run: Run) -> str:
    """Return the run's trace id."""
    return _trace_identity(run).trace.hex()


class SinkWorker:
    """Passes events to a sink, in its own thread."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.missed = 0
        self.bytes = 0
        self._logged_missed = 0
        self._lock = Lock()
        self.queue: Queue[tuple[Run, list[Event], int] | None] = Queue(MAX_QUEUED)
        self.thread = Thread(target=self._drain_queue, name="telemetry", daemon=True)
        self.thread.start()

    def on_events(self, run: Run, events: list[Event]) -> None:
        if not self.sink.with_content:
            events = [replace(event, data=_truncate(event.data)) for event in events]
        size = sum(_approximate_size(event.data) for event in events)
        with self._lock:
            try:
                if self.bytes + size > MAX_QUEUED_BYTES:
                    raise Full
                self.queue.put_nowait((run, events, size))
                self.bytes += size
                return
            except Full:
                is_first = self.missed == self._logged_missed
                self.missed += len(events)
        if is_first:
            logger.warning("The telemetry queue is full. Some events are dropped.")

    def leave(self) -> None:
        with suppress(Full):
            self.queue.put(None, timeout=STOP_TIMEOUT_SECONDS)
        self.thread.join(STOP_TIMEOUT_SECONDS)

    def _drain_queue(self) -> None:
        due: float | None = None
        while True:
            try:
                item = self.queue.get(timeout=due and max(0.0, due - time.monotonic()))
            except Empty:
                due = None
                self._flush()
                continue
            if item is None:
                break
            run, events, size = item
            try:
                self.sink.take(run, events)
            except Exception:  # whatever the error, the worker must continue
                logger.exception("Can't export the events of run %s.", run.pk)
            with self._lock:
                self.bytes -= size
            due = due or time.monotonic() + FLUSH_SECONDS
            if self.sink.is_full or time.monotonic() > due:
                due = None
                self._flush()
        self._flush()
        self.sink.close()

    def _flush(self) -> None:
        try:
            self.sink.flush()
        except Exception:  # as above
            logger.exception("Can't export run events.")
        if not self.queue.empty():
            return
        with self._lock:
            missed = self.missed - self._logged_missed
            self._logged_missed = self.missed
        if missed:
            logger.warning("The telemetry queue has drained. %d events were dropped.", missed)


class SpanSink:
    """Builds spans from events and sends them in batches."""

    def __init__(
        self, exporter: "Exporter", *, with_content: bool = False, with_personal: bool = False
    ) -> None:
        self.exporter = exporter
        self.with_content = with_content
        self.with_personal = with_personal
        self._builders: OrderedDict[int, SpanBuilder] = OrderedDict()
        self._ended_spans: list[TraceSpan] = []

    @property
    def is_full(self) -> bool:
        return len(self._ended_spans) >= MAX_BATCH_SPANS

    def take(self, run: Run, events: Sequence[Event]) -> None:
        builder = self._builders.get(run.pk)
        is_new = builder is None
        if builder is None:
            content_filter: ContentFilter = masking.mask_value
            if self.with_personal and not _replaces_personal_data(run):
                content_filter = lambda value: value  # noqa: E731
            builder = SpanBuilder(
                _trace_identity(run),
                with_content=self.with_content,
                content_filter=content_filter,
            )
            self._builders[run.pk] = builder
            if len(self._builders) > MAX_OPEN_RUNS:
                self._builders.popitem(last=False)
        if builder.seq + 1 < events[0].seq:
            for event in _stored_events(run, builder.seq, events[0].seq):
                ended_spans = builder.take(event)
                if not is_new:  # what another process has saved, that one has sent
                    self._ended_spans += ended_spans
        for event in events:
            if event.seq > builder.seq:
                self._ended_spans += builder.take(event)
        if events[-1].type == "run_finished":
            del self._builders[run.pk]

    def flush(self) -> None:
        while self._ended_spans:
            batch = self._ended_spans[:MAX_BATCH_SPANS]
            self._ended_spans = self._ended_spans[MAX_BATCH_SPANS:]
            self.exporter.send(batch)

    def close(self) -> None:
        self.exporter.close()


def _create_sinks(environment: Any) -> list[Sink]:
    sinks: list[Sink] = []
    if environment.sends_spans:
        try:
            from .otlp import Exporter  # the extra `otlp`, which also takes memory
        except ModuleNotFoundError as error:
            logger.warning("Spans aren't sent: %s is missing. Run: make otlp", error.name)
        else:
            resource = {"service.name": "ashiato", "service.version": process_status.version()}
            headers = environment.all_otlp_headers()
            span_sink = SpanSink(
                Exporter(environment.otlp_endpoint, headers, resource),
                with_content=environment.otlp_content,
                with_personal=environment.otlp_personal,
            )
            sinks.append(span_sink)
    if environment.trace_console != "off":
        sinks.append(LogSink.to_console(environment.trace_console, masking.mask_value))
    if environment.trace_file is not None:
        level = environment.trace_file_level
        sinks.append(LogSink.to_file(environment.trace_file, level, masking.mask_value))
    return sinks


def _replaces_personal_data(run: Run) -> bool:
    """Whether the run's agent lets no personal data out, which no setting of a sink changes."""
    try:
        return personal_data_policy(run) == Agent.PersonalData.HIDDEN
    finally:
        connection.close()


def _truncate(value: Any) -> Any:
    """Truncate a value to what is used without content."""
    if isinstance(value, str):
        return value[: MAX_CONTENT_CHARS + 1]
    if isinstance(value, Mapping):
        return {name: _truncate(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_truncate(item) for item in value[:MAX_LIST_ITEMS]]
    return value


def _approximate_size(value: Any) -> int:
    """Return the approximate memory of a value."""
    if isinstance(value, str):
        return sys.getsizeof(value)
    size = VALUE_OVERHEAD_BYTES
    if isinstance(value, Mapping):
        size += VALUE_OVERHEAD_BYTES * len(value)
        size += sum(map(_approximate_size, value.values()))
    elif isinstance(value, list | tuple):
        size += sum(map(_approximate_size, value))
    return size


def _trace_identity(run: Run) -> TraceIdentity:
    return TraceIdentity(number=run.pk, topic=run.topic, began=run.started_at)


def _stored_events(run: Run, after_seq: int, before_seq: int) -> list[Event]:
    try:
        rows = RunEvent.objects.filter(run=run, seq__gt=after_seq, seq__lt=before_seq)
        return [row.value for row in rows.order_by("seq")]
    finally:
        connection.close()
