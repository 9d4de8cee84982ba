"""PDFs with a million objects or pages, real or claimed, are read within limits."""

import struct
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest

from agents.knowledge.parsing import process

MILLION = 1_000_000
TEXT = b"BT /F 12 Tf 20 100 Td (Hello objects) Tj ET"
FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
OBJECTS = (
    b"<</Type/Catalog/Pages 2 0 R>>",
    b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
    b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R"
    b"/Resources<</Font<</F " + FONT + b">>>>>>",
    b"<</Length %d>>stream\n%b\nendstream" % (len(TEXT), TEXT),
)


def write(objects: tuple[bytes, ...], size: int = 0) -> bytes:
    file, places = BytesIO(), []
    file.write(b"%PDF-1.4\n")
    for number, body in enumerate(objects, start=1):
        places.append(file.tell())
        file.write(b"%d 0 obj%b endobj\n" % (number, body))
    end, count = file.tell(), len(objects) + 1
    file.write(b"xref\n0 %d\n0000000000 65535 f \n" % count)
    file.write(b"".join(b"%010d 00000 n \n" % place for place in places))
    file.write(b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (size or count, end))
    return file.getvalue()


def with_claimed_objects() -> bytes:
    return write(OBJECTS, size=2**31 - 1)


def with_pages(count: int = MILLION) -> bytes:
    pages = b"<</Type/Pages/Kids[%b]/Count %d>>" % (b"3 0 R " * count, count)
    return write((OBJECTS[0], pages, *OBJECTS[2:]))


def with_packed_objects(count: int = MILLION) -> bytes:
    """Return a file whose index lists a million objects in one compressed stream."""
    head = b" ".join(b"%d %d" % (number + 10, number * 2) for number in range(count)) + b" "
    packed = zlib.compress(head + b"1 " * count)
    about = (count, len(head), len(packed), packed)
    stream = b"<</Type/ObjStm/N %d/First %d/Filter/FlateDecode/Length %d>>stream\n%b\nendstream"
    plain = write((*OBJECTS, stream % about))
    body = plain[: plain.rindex(b"xref\n0")]
    places = [body.index(b"\n%d 0 obj" % number) + 1 for number in range(1, 6)]
    rows = [struct.pack(">BIH", 0, 0, 65_535)]
    rows += [struct.pack(">BIH", 1, place, 0) for place in (*places, len(body))]
    rows += [bytes(7)] * 3 + [struct.pack(">BIH", 2, 5, at & 0xFFFF) for at in range(count)]
    index = zlib.compress(b"".join(rows))
    about = (count + 10, len(index), index, len(body))
    return body + (
        b"6 0 obj<</Type/XRef/Size %d/Root 1 0 R/W[1 4 2]/Filter/FlateDecode/Length %d>>"
        b"stream\n%b\nendstream endobj\nstartxref\n%d\n%%%%EOF" % about
    )


@pytest.mark.parametrize(
    ("make", "pages"),
    [
        (with_claimed_objects, 1),
        (with_pages, MILLION),
        pytest.param(with_packed_objects, 1, marks=pytest.mark.thorough),
        pytest.param(
            lambda: write((*OBJECTS, *[b"<<>>"] * MILLION)), 1, marks=pytest.mark.thorough
        ),
    ],
    ids=["claimed", "pages", "packed", "objects"],
)
def test_a_pdf_with_a_million_objects_is_read(
    make: Callable[[], bytes], pages: int, tmp_path: Path
) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(make())

    found = process.parse(path, "a.pdf", deadline=30)

    assert found.parts[0].text == "Hello objects"
    assert found.pages == pages
    assert len(found.parts) <= 3_000
