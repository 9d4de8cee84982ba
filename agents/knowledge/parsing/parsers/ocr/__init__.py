"""Reads text from images (OCR) with the models in the `rapidocr` package."""

import resource
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from agents.engine.sentences import Sentence as _

from ..values import UnreadableDocument

if TYPE_CHECKING:
    from .models import TextModels

MIN_CONFIDENCE = 0.5
MISSING = _("Text recognition isn't installed. Run `make run` on the server and try again.")


def is_available() -> bool:
    from importlib.util import find_spec

    return all(find_spec(name) for name in ("rapidocr", "onnxruntime"))


def recognize(pixels: Any) -> str:
    """Return the text in an image, an array of RGB pixels, in reading order."""
    from PIL import Image

    from . import reading_order

    models = _load_models()
    image = Image.fromarray(pixels)
    read = [models.read_line(image, corners) for corners in models.find_lines(image)]
    lines = [line for line in read if line.confidence >= MIN_CONFIDENCE and line.text.strip()]
    return "\n".join(" ".join(row) for row in reading_order.rows(lines))


@cache
def _load_models() -> "TextModels":
    """Load the models once per process: a second, and 300 MB."""
    if not is_available():
        raise UnreadableDocument(MISSING)
    if sys.platform == "linux":
        # The second, higher limits of memory and CPU time, which only the models need.
        for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU):
            _, hard_limit = resource.getrlimit(kind)
            resource.setrlimit(kind, (hard_limit, hard_limit))
    from .models import TextModels

    return TextModels()
