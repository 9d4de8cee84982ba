"""A collection follows a bucket of a real S3 server."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from agents.knowledge import sources
from agents.knowledge.sources import bucket as bucket_place
from agents.models import Collection, DocumentSource

pytestmark = pytest.mark.django_db
pytest.importorskip("moto", reason="needs the development packages")
boto3 = pytest.importorskip("boto3", reason="needs `make s3`")

KEY = {"aws_access_key_id": "key", "aws_secret_access_key": "hunter2"}


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(autouse=True)
def _settings(settings: Any, tmp_path: Any) -> None:
    settings.EGRESS_ALLOW = ["127.0.0.1"]
    settings.STORAGES = settings.STORAGES | {
        "files": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": tmp_path / "files"},
        }
    }


@pytest.fixture
def bucket(provider: str) -> Iterator[Any]:
    resource = boto3.resource("s3", endpoint_url=provider, region_name="us-east-1", **KEY)
    made = resource.create_bucket(Bucket="birds")
    yield made
    made.objects.all().delete()
    made.delete()


@pytest.fixture
def source(provider: str) -> DocumentSource:
    place = {"bucket": "birds", "endpoint": provider, "key_id": "key", "key_prefix": "docs"}
    return DocumentSource.objects.create(
        collection=Collection.objects.create(name="Birds"),
        kind="s3",
        name="Bucket",
        place=place,
        secret="hunter2",
    )


def check(source: DocumentSource, **place: str) -> str:
    source.place |= place
    source.save(update_fields=["place"])
    sources.check_soon(source)
    assert sources.check_due() == 1
    source.refresh_from_db()
    return source.problem


def names(source: DocumentSource) -> list[str]:
    return sorted(source.documents.values_list("source", flat=True))


def test_a_bucket_is_followed(
    bucket: Any, source: DocumentSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_place, "MAX_PAGES", 2)
    for key in (
        "docs/heron.md",
        "docs/reeds/bittern.md",
        "docs/../up.md",
        "docs2/x.md",
        "y.md",
    ):
        bucket.put_object(Key=key, Body=f"About {key}.".encode())
    bucket.put_object(Key="docs/empty/")
    assert check(source) == ""
    assert names(source) == ["Bucket/heron.md", "Bucket/reeds/bittern.md"]

    bucket.put_object(Key="docs/heron.md", Body=b"The heron fishes.")
    bucket.Object("docs/reeds/bittern.md").delete()
    assert check(source) == ""
    [document] = source.documents.all()
    assert document.file is not None
    with document.file.open() as file:
        assert file.read() == b"The heron fishes."


def test_a_file_that_changed_after_it_was_listed_waits(
    bucket: Any, source: DocumentSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.put_object(Key="docs/heron.md", Body=b"The heron.")
    read = bucket_place._Bucket.read

    def change(self: Any, file: Any) -> Any:
        bucket.put_object(Key="docs/heron.md", Body=b"The heron fishes.")
        return read(self, file)

    monkeypatch.setattr(bucket_place._Bucket, "read", change)
    assert "changed while it was read" in check(source)
    assert names(source) == []


def test_what_cannot_be_listed_deletes_nothing_and_tells_no_secret(
    bucket: Any, source: DocumentSource, settings: Any
) -> None:
    bucket.put_object(Key="docs/heron.md", Body=b"The heron.")
    check(source)
    assert check(source, bucket="gone") == bucket_place.NO_BUCKET.fill(name="gone")
    settings.EGRESS_ALLOW = []
    assert "is blocked because its address" in check(source, bucket="birds")
    assert check(source, endpoint="http://169.254.169.254")
    assert "hunter2" not in source.problem
    assert names(source) == ["Bucket/heron.md"]


def listing(body: bytes) -> bytes:
    return b'<?xml version="1.0"?>' + body


@pytest.mark.parametrize(
    "body",
    [
        listing(b'<!DOCTYPE a [<!ENTITY b "bb">]><a>&b;</a>'),
        listing(b"<ListBucketResult>" + b"<a/>" * 200_000 + b"</ListBucketResult>"),
        listing(b"<ListBucketResult>").decode().encode("utf-16"),
        b" " * 9_000_000,
        b"<html>",
        b"<html><body>Sign in</body></html>",
        b"",
        listing(b"<ListBucketResult><Name>other</Name><IsTruncated>false</IsTruncated>")
        + b"</ListBucketResult>",
        # As servers that only know the first version send it.
        listing(b"<ListBucketResult><Name>birds</Name><IsTruncated>true</IsTruncated>")
        + b"<NextMarker>b</NextMarker></ListBucketResult>",
    ],
    ids=[
        *("entities", "elements", "utf-16", "large"),
        *("html", "page", "empty", "other bucket", "half a list"),
    ],
)
def test_a_hostile_server_is_refused(
    body: bytes, source: DocumentSource, settings: Any
) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            signed.append(self.headers["Authorization"])
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: Any) -> None:
            pass

    signed: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    problem = check(source, endpoint=f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    server.server_close()
    assert problem
    assert names(source) == []
    # Egress sets this header itself, so it must not be signed.
    assert "accept-encoding" not in signed[0]
