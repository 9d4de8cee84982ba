"""Small images that claim a lot: only the first frame is decoded, and metadata stays behind."""

import os
import struct
import zlib
from io import BytesIO

import pytest
from PIL import Image

from agents.knowledge.files import FileRefused, images, store
from agents.knowledge.parsing.parsers import image as parser
from agents.knowledge.parsing.parsers.values import UnreadableDocument
from tests.pictures import _chunk, png

pytestmark = pytest.mark.usefixtures("folder")

FRAMES = 10_000
SECONDS = 10


def scale(data):
    started = sum(os.times()[:4])
    with store.stage(data, name="a") as staged, images.scale(staged, "a", owner=None) as scaled:
        found = Image.open(BytesIO(scaled.staged.path.read_bytes()))
        assert scaled.thumbnail.stat().st_size < 20_000
    # CPU time of this process and of the decoder.
    assert sum(os.times()[:4]) - started < SECONDS
    return found


def gif():
    frame = b"\x21\xf9\4\0\1\0\0\0\x2c" + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\2\2\x44\1\0"
    head = b"GIF89a" + struct.pack("<HHBBB", 900, 600, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    return head + frame * FRAMES + b";"


def apng():
    def control(number, width, height):
        about = (number, width, height, 0, 0, 1, 10, 0, 0)
        return _chunk(b"fcTL", struct.pack(">IIIIIHHBB", *about))

    still = png(900, 600)
    at, end = still.index(b"IDAT") - 4, still.index(b"IEND") - 4
    dot = zlib.compress(bytes(4))
    frames = (
        control(number, 1, 1) + _chunk(b"fdAT", struct.pack(">I", number + 1) + dot)
        for number in range(1, 2 * FRAMES, 2)
    )
    animated = _chunk(b"acTL", struct.pack(">II", 2**31 - 1, 0)) + control(0, 900, 600)
    return still[:at] + animated + still[at:end] + b"".join(frames) + still[end:]


def webp():
    dot = BytesIO()
    Image.new("RGB", (1, 1)).save(dot, "WEBP", lossless=True)
    frame = bytes(12) + struct.pack("<I", 100) + dot.getvalue()[12:]
    frame = b"ANMF" + struct.pack("<I", len(frame)) + frame
    size = struct.pack("<I", 899)[:3] + struct.pack("<I", 599)[:3]
    head = b"WEBPVP8X" + struct.pack("<I", 10) + b"\2\0\0\0" + size
    body = head + b"ANIM" + struct.pack("<IIH", 6, 0, 0) + frame * FRAMES
    return b"RIFF" + struct.pack("<I", len(body)) + body


@pytest.mark.parametrize("make", [gif, apng, webp])
def test_of_ten_thousand_frames_only_the_first_is_kept(make):
    found = scale(make())

    assert found.size == (900, 600)
    assert getattr(found, "n_frames", 1) == 1
    assert parser.load(make()).shape == (600, 900, 3)


def with_chunk(name, data):
    plain = png(30, 20)
    at = plain.index(b"IDAT") - 4
    return plain[:at] + _chunk(name, data) + plain[at:]


@pytest.fixture(scope="module")
def bomb():
    return zlib.compress(bytes(300_000_000), 9)


@pytest.mark.parametrize(
    ("name", "head"),
    [(b"iCCP", b"icc\0\0"), (b"zTXt", b"Raw profile type exif\0\0")],
    ids=["colors", "exif"],
)
def test_metadata_that_unpacks_to_300_megabytes_is_refused(name, head, bomb):
    data = with_chunk(name, head + bomb)

    with pytest.raises(FileRefused, match="damaged"):
        scale(data)
    with pytest.raises(UnreadableDocument, match="damaged"):
        parser.load(data)


def jpeg_with_exif(entries, pointer):
    """Return a photo whose entries claim 4 GB each, and lead back to themselves."""
    directory = struct.pack("<H", len(entries)) + b"".join(
        struct.pack("<HHII", tag, kind, count, value) for tag, kind, count, value in entries
    )
    exif = b"Exif\0\0II*\0" + struct.pack("<I", 8) + directory + struct.pack("<I", pointer)
    file = BytesIO()
    Image.new("RGB", (30, 20)).save(file, "JPEG", exif=exif)
    return file.getvalue()


@pytest.mark.parametrize(
    ("entries", "size"),
    [
        ([(0x9000 + n, 2, 2**32 - 1, 8) for n in range(4_000)], (30, 20)),
        ([(0x0112, 3, 1, 6), (0x8769, 4, 1, 8)], (20, 30)),  # the second leads to itself
    ],
)
def test_exif_that_claims_too_much_does_no_harm(entries, size):
    found = scale(jpeg_with_exif(entries, 8))

    assert found.size == size
    assert not found.getexif()


def test_a_huge_color_profile_is_left_out():
    file = BytesIO()
    Image.new("RGB", (30, 20)).save(file, "PNG", icc_profile=b"icc" * 200_000)

    assert "icc_profile" not in scale(file.getvalue()).info
