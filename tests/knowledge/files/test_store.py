"""Files are stored once, by their content."""

import os
import stat
import struct
import subprocess
import sys
import time
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest
from django.core.files.storage import storages
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from agents import file_types
from agents.knowledge.files import FileRefused, release, save, store
from agents.models import Collection, Document, StoredFile
from tests.pictures import png, wav

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("folder")]


def keep(file, owner):
    collection = Collection.objects.create(name=f"of {file.pk}", owner=owner)
    return Document.objects.create(collection=collection, owner=owner, source="a", file=file)


def read(file):
    with file.open() as content:
        return content.read()


def stored(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_the_same_content_is_stored_once(person, stranger, folder):
    first = save(SimpleUploadedFile("a.txt", b"hello"), name="a.txt", owner=person)
    second = save([b"hel", b"lo"], name="b.txt", owner=stranger)
    assert first == second
    assert stored(folder) == [first.path]
    assert read(first) == b"hello"


def test_only_our_own_user_can_read_the_bytes(person, folder):
    path = folder / save(b"secret", name="a", owner=person).path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_what_is_too_large_or_empty_leaves_nothing_behind(person, folder):
    with pytest.raises(FileRefused, match=r"a\.txt is larger than 0\.1 MB"):
        save(iter([b"x" * 60_000] * 3), name="a.txt", owner=person, max_bytes=100_000)
    with pytest.raises(FileRefused, match="empty"):
        save(b"", name="a.txt", owner=person)
    assert stored(folder) == []
    assert not StoredFile.objects.exists()


def test_the_quota_counts_each_content_once_and_names_the_limit(person, settings):
    settings.USER_FILES_MB = 1
    keep(save(b"x" * 600_000, name="a", owner=person), person)
    keep(save(b"x" * 600_000, name="again", owner=person), person)
    with pytest.raises(FileRefused, match=r"use 0\.6 MB of 1\.0 MB, and this one has 0\.5 MB"):
        save(b"y" * 500_000, name="b", owner=person)
    assert StoredFile.objects.count() == 1


def test_bytes_go_with_the_last_row_that_refers_to_them(person, folder):
    file = save(b"hello", name="a", owner=person)
    document = keep(file, person)
    assert release([file.pk, None]) == 0
    document.delete()
    assert release([file.pk]) == 1
    assert stored(folder) == []


def test_a_crash_before_the_bytes_were_deleted_is_repaired_by_the_next_save(person, folder):
    file = save(b"hello", name="a", owner=person)
    (folder / file.path).unlink()
    assert read(save(b"hello", name="a", owner=person)) == b"hello"


def test_the_sweep_deletes_only_what_is_old_and_unused(person, folder):
    kept = save(b"kept", name="a", owner=person)
    keep(kept, person)
    unused, fresh = (
        save(b"unused", name="b", owner=person),
        save(b"fresh", name="c", owner=person),
    )
    old = timezone.now() - timedelta(days=2)
    StoredFile.objects.filter(pk__in=[kept.pk, unused.pk]).update(created_at=old)
    orphan = folder / "ab" / ("ab" * 32)
    orphan.parent.mkdir(exist_ok=True)
    orphan.write_bytes(b"orphan")
    draft = Path(folder, "incoming", "upload-x")
    draft.write_bytes(b"draft")
    scaled = Path(folder, "incoming", "image-x", "image")
    thumbnail = Path(folder, "thumbnails", "cd", f"{'cd' * 32}.webp")
    own_thumbnail = Path(folder, "thumbnails", f"{kept.path}.webp")
    for path in (scaled, thumbnail, own_thumbnail):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"picture")
    for path in (orphan, draft, scaled, thumbnail, own_thumbnail, folder / kept.path):
        os.utime(path, (time.time() - 2 * 86_400,) * 2)
    store.sweep()
    assert stored(folder) == sorted([kept.path, fresh.path, f"thumbnails/{kept.path}.webp"])
    assert not scaled.parent.exists()
    assert storages["files"].exists(kept.path)


def archive(*names, **contents):
    file = BytesIO()
    with ZipFile(file, "w") as pack:
        for name in names:
            pack.writestr(name, "x")
        for name, text in contents.items():
            pack.writestr(name, text)
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "name", "expected"),
    [
        (png(), "a.txt", "image/png"),
        (wav(), "a.mp3", "audio/wav"),
        (b"%PDF-1.7\n", "a.png", "application/pdf"),
        (b"\n\n%PDF-1.4", "a", "application/pdf"),
        (b"<svg onload=alert(1)>", "a.svg", "image/svg+xml"),
        (b"<html>", "a.png", "text/plain"),
        ("a,b\n1,2".encode("utf-16"), "a.csv", "text/csv"),
        ("\u6709\u7d66\u4f11\u6687".encode("cp932"), "a.txt", "text/plain"),
        (b"\0\1\2\3", "a.txt", "application/octet-stream"),
        (archive("[Content_Types].xml", "xl/workbook.xml"), "a.bin", file_types.XLSX),
        (archive("[Content_Types].xml", "word/document.xml"), "a.zip", file_types.DOCX),
        (archive(mimetype="application/epub+zip"), "a", "application/epub+zip"),
        (archive(mimetype="text/html"), "a.html", "application/zip"),
        (archive("a"), "a.docx", "application/zip"),
        (b"PK\x03\x04broken", "a", "application/zip"),
        (b"\0\0\0\x18ftypheic", "a.jpg", "image/heic"),
        (b"\0\0\0\x18ftypisom", "a", "video/mp4"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a.xls", "application/vnd.ms-excel"),
        (b"BMW sells cars, as everybody knows.", "a.txt", "text/plain"),
        (b"MZ is short for Mozambique.", "a.txt", "text/plain"),
        (b"MZ\x90\0\3\0", "a.txt", file_types.PROGRAM),
        (b"\x7fELF\2\1\1\0", "a", file_types.PROGRAM),
        (b"BZh91AY&SY\0\xff", "a.txt", "application/x-bzip2"),
        (bytes(257) + b"ustar\0" + bytes(249), "a.txt", file_types.TAR),
        (png() + b"%PDF-1.7", "a.pdf", "image/png"),
        (archive("META-INF/container.xml"), "a.zip", file_types.EPUB),
    ],
)
def test_the_type_is_read_from_the_content(content, name, expected):
    assert file_types.refine(file_types.sniff(BytesIO(content)), name) == expected


@pytest.mark.parametrize("is_zip64", [False, True])
def test_a_zip_with_a_huge_directory_is_not_read(monkeypatch, is_zip64):
    monkeypatch.setattr(file_types, "MAX_DIRECTORY_BYTES", 100)
    content = archive("[Content_Types].xml", "word/document.xml")
    if is_zip64:  # the short record says little, the long one everything
        end = content.rindex(b"PK\5\6")
        size, start = struct.unpack_from("<LL", content, end + 12)
        record = struct.pack("<4sQHHLLQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, 2, 2, size, start)
        locator = struct.pack("<4sLQL", b"PK\6\7", 0, end, 1)
        last = content[end : end + 12] + struct.pack("<LLH", 1, start, 0)
        content = content[:end] + record + locator + last

    assert file_types.sniff(BytesIO(content)) == file_types.ZIP


def test_the_types_of_files_are_told_apart_without_django():
    check = "import sys; import agents.file_types; sys.exit('django' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", check]).returncode == 0
