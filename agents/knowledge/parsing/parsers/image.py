"""Images, read by OCR."""

from io import BytesIO
from typing import Any

from agents.engine.sentences import Sentence as _

from . import ocr
from .archive import DAMAGED
from .values import (
    NeedsRecognition,
    ParsedDocument,
    ParsedPart,
    SourceFile,
    UnreadableDocument,
)

MAX_PIXELS = 40_000_000
MAX_SIDE = 2_600
NO_TEXT = _("No text was found in this image.")
TOO_MANY_PIXELS = _(
    "This image is larger than %(size)s megapixels.", size=MAX_PIXELS // 1_000_000
)


def parse(source: SourceFile) -> ParsedDocument:
    """Parse an image; of several frames, only the first is read."""
    if not source.recognizes:
        raise NeedsRecognition
    read = ocr.recognize(load(source.data))
    if not read.is_readable:
        raise UnreadableDocument(ocr.UNREADABLE.fill(certainty=read.percent))
    part = ParsedPart(kind="page", text=read.text, is_recognized=True, certainty=read.percent)
    return ParsedDocument(title=source.stem, parts=[part], pages=1, why_empty=NO_TEXT)


def load(data: bytes) -> Any:
    """Return an image's pixels, upright and scaled down; raise UnreadableDocument."""
    import numpy
    from PIL import Image, ImageOps

    Image.MAX_IMAGE_PIXELS = MAX_PIXELS
    if data[4:8] == b"ftyp":
        from pi_heif import register_heif_opener

        register_heif_opener(thumbnails=False)
    try:
        with Image.open(BytesIO(data)) as image:
            if image.width * image.height > MAX_PIXELS:
                raise UnreadableDocument(TOO_MANY_PIXELS)
            image.draft("RGB", (MAX_SIDE, MAX_SIDE))
            image.load()
            upright = ImageOps.exif_transpose(image)
            upright.thumbnail((MAX_SIDE, MAX_SIDE))
            if upright.mode in {"RGBA", "LA", "P", "PA"}:
                # Black text on a clear background is common.
                clear = upright.convert("RGBA")
                white = Image.new("RGBA", clear.size, "white")
                upright = Image.alpha_composite(white, clear)
            return numpy.asarray(upright.convert("RGB"))
    except Image.DecompressionBombError as error:
        raise UnreadableDocument(TOO_MANY_PIXELS) from error
    except (OSError, ValueError, SyntaxError, EOFError, OverflowError) as error:
        if isinstance(error, UnreadableDocument):
            raise
        raise UnreadableDocument(DAMAGED) from error
