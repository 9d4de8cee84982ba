"""Files in an S3-compatible bucket, over the wire: stored, served in parts, deleted."""

import asyncio
from types import SimpleNamespace

import pytest
from django.core.files.storage import storages
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import Http404
from django.test import RequestFactory

from agents.knowledge.files import FileRefused, images, release, save, serve, serving, store
from agents.models import StoredFile
from project import services
from tests.pictures import png

pytestmark = [pytest.mark.django_db, pytest.mark.thorough]
pytest.importorskip("moto", reason="needs the development packages")
pytest.importorskip("storages", reason="needs `make s3`")

BUCKET = "files-of-the-team"


@pytest.fixture(scope="module")
def provider():
    """A server that speaks S3, in a thread of its own."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def configured(endpoint):
    """Return the storage as the settings of an installation describe it."""
    secret = SimpleNamespace(get_secret_value=lambda: "secret")
    about = {"s3_bucket": BUCKET, "s3_endpoint": endpoint, "s3_region": "us-east-1"}
    about |= {"s3_prefix": "ashiato", "s3_key_id": "key", "s3_secret": secret}
    return services.file_storage(SimpleNamespace(**about))


@pytest.fixture
def bucket(provider, settings):
    settings.STORAGES = {**settings.STORAGES, "files": configured(provider)}
    client = storages["files"].connection.meta.client
    client.create_bucket(Bucket=BUCKET)
    yield client
    found = client.list_objects_v2(Bucket=BUCKET).get("Contents", ())
    for row in found:
        client.delete_object(Bucket=BUCKET, Key=row["Key"])
    client.delete_bucket(Bucket=BUCKET)


def keys(bucket):
    found = bucket.list_objects_v2(Bucket=BUCKET).get("Contents", ())
    return [row["Key"] for row in found]


def get(file, name="a.txt", **headers):
    request = RequestFactory().get("/", headers=headers)
    return serve(request, file, name=name)


def body(response):
    async def read():
        return b"".join([piece async for piece in response.streaming_content])

    return asyncio.run(read()) if response.streaming else response.content


def test_a_content_is_stored_once_and_deleted_with_its_last_row(bucket):
    first = save(b"Heron.", name="a.txt", owner=None)
    again = save(SimpleUploadedFile("b.txt", b"Heron."), name="b.txt", owner=None)

    assert (first, keys(bucket)) == (again, [f"ashiato/{first.path}"])
    with store.local_path(first) as path:
        assert path.read_bytes() == b"Heron."
    assert release([first.pk]) == 1
    assert (keys(bucket), StoredFile.objects.count()) == ([], 0)


def test_a_page_in_the_bucket_is_downloaded_and_runs_nothing(bucket):
    response = get(save(b"<script>alert(1)</script>", name="a.html", owner=None), "a.html")

    assert response["Content-Type"] == "application/octet-stream"
    assert response["Content-Disposition"].startswith("attachment;")
    assert response["X-Content-Type-Options"] == "nosniff"
    assert b"<script>" in body(response)


def test_a_part_of_a_long_file_is_read_without_the_rest(bucket, monkeypatch):
    content = bytes(range(256)) * 12_000
    file = save(content, name="a.mp4", owner=None)
    monkeypatch.setattr(serving, "MAX_MEMORY_BYTES", 1_000)

    part = get(file, Range="bytes=1000000-1999999")

    assert (part.status_code, part["Content-Length"]) == (206, "1000000")
    assert body(part) == content[1_000_000:2_000_000]
    assert body(get(file)) == content


def test_a_thumbnail_is_made_stored_and_deleted(bucket):
    file = save(png(600, 400), name="a.png", owner=None)

    assert images.has_thumbnail(file, owner=None)
    response = serving.serve_thumbnail(RequestFactory().get("/"), file)
    assert response["Content-Type"] == "image/webp"
    assert len(keys(bucket)) == 2
    release([file.pk])
    assert keys(bucket) == []


def test_the_quota_counts_files_in_the_bucket(bucket, settings, django_user_model):
    person = django_user_model.objects.create_user("ada")
    settings.USER_FILES_MB = 1

    with pytest.raises(FileRefused, match="this one has"):
        save(bytes(1_100_000), name="a.txt", owner=person)


def test_bytes_without_a_row_are_swept_after_a_day(bucket, monkeypatch):
    kept = save(b"Heron.", name="a.txt", owner=None)
    monkeypatch.setattr(store, "is_used", lambda file: True)
    bucket.put_object(Bucket=BUCKET, Key=f"ashiato/ab/{'ab' * 32}", Body=b"lost")
    monkeypatch.setattr(store, "ORPHAN_AGE", -store.ORPHAN_AGE)

    store.sweep()

    assert keys(bucket) == [f"ashiato/{kept.path}"]


def test_a_missing_file_is_not_found(bucket):
    file = save(b"Heron.", name="a.txt", owner=None)
    bucket.delete_object(Bucket=BUCKET, Key=f"ashiato/{file.path}")

    with pytest.raises(Http404):
        get(file)


def test_a_storage_that_refuses_is_explained(bucket, caplog):
    file = save(b"Heron.", name="a.txt", owner=None)
    for row in keys(bucket):
        bucket.delete_object(Bucket=BUCKET, Key=row)
    bucket.delete_bucket(Bucket=BUCKET)
    try:
        with pytest.raises(FileRefused, match="The file storage isn't responding"):
            save(b"Egret.", name="b.txt", owner=None)
    finally:
        bucket.create_bucket(Bucket=BUCKET)
    assert file.pk
    assert "NoSuchBucket" in caplog.text


@pytest.fixture
def unreachable(settings, monkeypatch):
    """A storage at an address that takes connections and never answers."""
    import socket

    from agents.knowledge.files import bucket

    monkeypatch.setattr(bucket, "READ_SECONDS", 0.2)
    monkeypatch.setattr(bucket, "ATTEMPTS", 1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        settings.STORAGES = {**settings.STORAGES, "files": configured(address)}
        yield


def test_a_storage_that_does_not_answer_has_a_deadline(unreachable):
    file = StoredFile.objects.create(digest="ab" * 32, size=6, mime_type="image/png")

    with pytest.raises(FileRefused, match="Try again"):
        save(b"Heron.", name="a.txt", owner=None)
    response = get(file)

    assert response.status_code == 503
    assert "The file storage isn't responding." in response.text
    assert not images.has_thumbnail(file, owner=None)
