"""A real OTLP/HTTP receiver on loopback."""

import gzip
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass
class Collector:
    """Accepts spans, or responds with the given statuses, one per request."""

    port: int = 0  # any free port
    answers: list[int] = field(default_factory=list)
    spans: list[dict] = field(default_factory=list)
    headers: dict = field(default_factory=dict)
    resource: dict = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)

    def __enter__(self):
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers["content-encoding"] == "gzip":
                    body = gzip.decompress(body)
                status = collector.receive(self.path, dict(self.headers), body)
                self.send_response(status)
                self.send_header("content-length", "0")
                self.send_header("retry-after", "0")
                self.end_headers()

            def log_message(self, *about):
                """Skip logging."""

        self.server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()
        return self

    def __exit__(self, *about):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def receive(self, path, headers, body):
        self.paths.append(path)
        self.headers = {name.lower(): value for name, value in headers.items()}
        status = self.answers.pop(0) if self.answers else 200
        if status == 200:
            resource, spans = decode(body)
            self.resource = resource
            self.spans += spans
        return status

    def named(self, name):
        [span] = [span for span in self.spans if span["name"] == name]
        return span


def decode(body):
    """Return the resource's attributes, and its spans."""
    [told] = ExportTraceServiceRequest.FromString(body).resource_spans
    [scoped] = told.scope_spans
    return attributes(told.resource.attributes), list(map(span, scoped.spans))


def span(about):
    return {
        "trace": about.trace_id.hex(),
        "id": about.span_id.hex(),
        "parent": about.parent_span_id.hex(),
        "name": about.name,
        "kind": about.kind,
        "began": about.start_time_unix_nano,
        "ended": about.end_time_unix_nano,
        "attributes": attributes(about.attributes),
        "notes": [(event.name, attributes(event.attributes)) for event in about.events],
        "status": about.status.code,
        "message": about.status.message,
    }


def attributes(pairs):
    return {pair.key: value(pair.value) for pair in pairs}


def value(told):
    content = getattr(told, told.WhichOneof("value"))
    return [value(item) for item in content.values] if told.HasField("array_value") else content
