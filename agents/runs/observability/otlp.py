"""Spans to an OpenTelemetry receiver, by OpenTelemetry's own exporter.

It comes with the extra `otlp` and is imported only where spans are sent. It reads the standard
variables (`OTEL_EXPORTER_OTLP_*`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_SERVICE_NAME`) and retries.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.environment_variables import (
    OTEL_EXPORTER_OTLP_ENDPOINT,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
)
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from .trace_span import AttributeValue, TraceSpan, TraceSpanKind

logger = logging.getLogger(__name__)

TRACES_PATH = "/v1/traces"
ENDPOINTS = (OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, OTEL_EXPORTER_OTLP_ENDPOINT)
SCOPE = InstrumentationScope("ashiato")
KINDS = {TraceSpanKind.INTERNAL: SpanKind.INTERNAL, TraceSpanKind.CLIENT: SpanKind.CLIENT}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Messages(logging.Handler):
    """Collects the exporter's messages per batch, so that an outage is logged once."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        exporter_logger = logging.getLogger(OTLPSpanExporter.__module__)
        exporter_logger.handlers[:] = [self]
        exporter_logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


class Exporter:
    """Sends spans; counts those that can't be sent, and logs an outage once.

    Without an endpoint, the standard variables apply.
    """

    def __init__(
        self, endpoint: str, headers: Mapping[str, str], resource: Mapping[str, AttributeValue]
    ) -> None:
        base = endpoint.rstrip("/")
        address = base if not base or base.endswith(TRACES_PATH) else base + TRACES_PATH
        self.resource = Resource(dict(resource)).merge(OTELResourceDetector().detect())
        self.lost = 0
        self.is_away = False
        self._messages = _Messages()
        self._exporter = OTLPSpanExporter(endpoint=address or None, headers=dict(headers))
        endpoints = filter(None, (address, *map(os.environ.get, ENDPOINTS)))
        self._host = urlsplit(next(endpoints, "")).hostname

    def send(self, spans: Sequence[TraceSpan]) -> bool:
        self._messages.texts.clear()
        readable_spans = [readable(span, self.resource) for span in spans]
        if self._exporter.export(readable_spans) is not SpanExportResult.SUCCESS:
            self.lost += len(spans)
            if not self.is_away:
                self.is_away = True
                reason = next(iter(self._messages.texts), "the request was rejected.")
                logger.warning("Can't send spans to %s: %s", self._host, reason)
            return False
        if self.is_away:
            self.is_away = False
            logger.warning(
                "The OTLP endpoint accepts spans again. %d spans were lost.", self.lost
            )
        return True

    def close(self) -> None:
        self._exporter.shutdown()


def readable(span: TraceSpan, resource: Resource) -> ReadableSpan:
    """Return a span in the form OpenTelemetry's exporters take."""
    status = Status()
    if span.failure is not None:
        status = Status(StatusCode.ERROR, _string_field(span.failure))
    events = [
        Event(_string_field(e.name), _attributes(e.attributes), _nanoseconds(e.time))
        for e in span.events
    ]
    return ReadableSpan(
        name=_string_field(span.name),
        context=_context(span.trace, span.id),
        parent=_context(span.trace, span.parent) if span.parent else None,
        resource=resource,
        attributes=_attributes(span.attributes),
        events=events,
        kind=KINDS[span.kind],
        status=status,
        start_time=_nanoseconds(span.began),
        end_time=_nanoseconds(span.ended or span.began),
        instrumentation_scope=SCOPE,
    )


def _context(trace_id: bytes, span_id: bytes) -> SpanContext:
    ids = int.from_bytes(trace_id), int.from_bytes(span_id)
    return SpanContext(*ids, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def _attributes(values: Mapping[str, AttributeValue]) -> dict[str, AttributeValue]:
    attributes: dict[str, AttributeValue] = {}
    for name, value in values.items():
        if isinstance(value, str):
            attributes[name] = _string_field(value)
        elif isinstance(value, bool | int | float):
            attributes[name] = value
        else:
            attributes[name] = list(map(_string_field, value))
    return attributes


def _string_field(text: str) -> str:
    """Replace lone surrogates, one of which would cost the whole batch."""
    return text.encode(errors="replace").decode()


def _nanoseconds(moment: datetime) -> int:
    return max(0, (moment - EPOCH) // timedelta(microseconds=1) * 1000)
