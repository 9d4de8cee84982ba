"""Images are scaled, turned and stripped in a confined process."""

import struct
import zlib
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from agents.knowledge.files import FileRefused, images, store
from tests.pictures import png

pytestmark = pytest.mark.usefixtures("folder")


def scale(data, name="a.png"):
    with (
        store.stage(data, name=name) as staged,
        images.scale(staged, name, owner=None) as scaled,
    ):
        thumbnail = Image.open(BytesIO(scaled.thumbnail.read_bytes()))
        return scaled, Image.open(BytesIO(scaled.staged.path.read_bytes())), thumbnail


def photo(width, height, **options):
    file = BytesIO()
    Image.effect_noise((width, height), 90).convert("RGB").save(file, "JPEG", **options)
    return file.getvalue()


def test_a_phone_photo_is_scaled_turned_and_loses_its_place():
    exif = Image.Exif()
    exif[0x0112] = 6  # taken with the phone held upright
    exif.get_ifd(0x8825)[1] = "N"  # a latitude
    scaled, image, thumbnail = scale(photo(3_000, 1_500, exif=exif, quality=95), "a.jpg")
    assert image.size == (1_000, 2_000) == (scaled.width, scaled.height)
    assert not image.getexif()
    assert scaled.staged.size <= 4_000_000
    assert max(thumbnail.size) == 480


def test_a_large_png_becomes_small_enough_for_every_provider():
    file = BytesIO()
    Image.effect_noise((1_900, 1_900), 90).convert("RGB").save(file, "PNG", compress_level=1)
    scaled, image, _ = scale(file.getvalue())
    assert image.format == "JPEG"
    assert scaled.staged.size <= 3_700_000


def bomb(side):
    def chunk(name, data):
        check = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + check

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0"))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (bomb(50_000), "megapixels"),
        (png(60, 60)[:60], "damaged"),
        (b"\0\0\0\x18ftypheic", "damaged"),
    ],
)
def test_an_image_that_cannot_be_read_is_refused_with_a_sentence(data, sentence):
    with pytest.raises(FileRefused, match=sentence):
        scale(data)


def test_one_users_images_leave_a_slot_for_others():
    with (
        images.SLOTS.slot(1, 0),
        images.SLOTS.slot(1, 0),
        store.stage(png(60, 60), name="a.png") as staged,
        images.scale(staged, "a.png", owner=2) as scaled,
    ):
        assert scaled.width == 60


def test_an_image_that_finds_no_slot_is_not_called_slow(monkeypatch):
    monkeypatch.setattr(images, "SECONDS", 0.01)
    with (
        images.SLOTS.slot(1, 0),
        images.SLOTS.slot(1, 0),
        store.stage(png(60, 60), name="a.png") as staged,
        pytest.raises(FileRefused, match="Try again in a moment"),
        images.scale(staged, "a.png", owner=1),
    ):
        pass


def test_a_phones_photo_becomes_a_jpeg():
    photo = Path(__file__).parents[1] / "scans" / "photo.heic"
    _, image, thumbnail = scale(photo.read_bytes())
    assert (image.format, image.size) == ("JPEG", (640, 200))
    assert thumbnail.format == "WEBP"


@pytest.mark.django_db
def test_a_thumbnail_is_made_once_and_goes_with_the_image(folder):
    file = store.save(png(9, 9), name="a.png", owner=None)
    assert images.has_thumbnail(file, owner=None)
    assert (folder / store.thumbnail_path(file)).exists()
    store.release([file.pk])
    assert not [path for path in folder.rglob("*") if path.is_file()]
