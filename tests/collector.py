"""A real receiver of OTLP over HTTP on loopback, which reads the wire to its last field."""

import struct
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Collector:
    """Takes spans, or answers with what it was told to, one answer a request."""

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
                status = collector.receive(self.path, dict(self.headers), body)
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *about):
                """Nobody wants to read it."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
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
    [part] = fields(body)[1]
    about = fields(part)
    scoped = fields(about[2][0])
    resource = attributes(fields(about[1][0]).get(1, ()))
    return resource, [span(fields(part)) for part in scoped.get(2, ())]


def span(about):
    status = fields(about[15][0]) if 15 in about else {}
    return {
        "trace": about[1][0].hex(),
        "id": about[2][0].hex(),
        "parent": about[4][0].hex() if 4 in about else "",
        "name": about[5][0].decode(),
        "kind": about[6][0],
        "began": about[7][0],
        "ended": about[8][0],
        "attributes": attributes(about.get(9, ())),
        "notes": [note(fields(part)) for part in about.get(11, ())],
        "status": status.get(3, [0])[0],
        "message": status.get(2, [b""])[0].decode(),
    }


def note(about):
    return about[2][0].decode(), attributes(about.get(3, ()))


def attributes(parts):
    pairs = [fields(part) for part in parts]
    return {pair[1][0].decode(): value(fields(pair[2][0])) for pair in pairs}


def value(about):
    [(kind, [content])] = about.items()
    match kind:
        case 1:
            return content.decode()
        case 2:
            return bool(content)
        case 3:
            return content - 2**64 if content >> 63 else content
        case 4:
            return struct.unpack("<d", struct.pack("<Q", content))[0]
        case 5:
            return [value(fields(item)) for item in fields(content).get(1, ())]
    raise ValueError(f"an attribute of kind {kind}")


def fields(message):
    """The fields of a protobuf message, by their numbers."""
    found, at = {}, 0
    while at < len(message):
        tag, at = varint(message, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            content, at = varint(message, at)
        elif wire == 1:
            (content,), at = struct.unpack_from("<Q", message, at), at + 8
        elif wire == 2:
            length, at = varint(message, at)
            content, at = message[at : at + length], at + length
            assert len(content) == length, "a field is cut off"
        else:
            raise ValueError(f"wire type {wire}")
        found.setdefault(number, []).append(content)
    return found


def varint(message, at):
    number = shift = 0
    while True:
        byte = message[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return number, at
