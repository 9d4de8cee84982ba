"""Reads text from images (OCR) with the models in the `rapidocr` package."""

import re
import resource
import sys
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from agents.engine.sentences import Sentence as _

from ..values import UnreadableDocument

if TYPE_CHECKING:
    from .models import TextModels

MIN_CONFIDENCE = 0.5
# Below this, what was read isn't what is on the page: letters that the models don't know.
MIN_CERTAINTY = 0.8
# The models know Greek letters only from formulas.
UNKNOWN_LETTERS = re.compile("[\u0370-\u03ff]")
MISSING = _("Text recognition isn't installed. Run `make run` on the server and try again.")

UNREADABLE = _(
    "Its text can't be recognized (certainty %(certainty)s %%): text recognition reads Latin "
    "letters, Japanese and Chinese. Upload the text in another format."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognition:
    """The text of an image, and how sure the models are of it, 0 to 1."""

    text: str
    certainty: float = 1.0

    @property
    def percent(self) -> int:
        return round(self.certainty * 100)

    @property
    def is_readable(self) -> bool:
        return self.certainty >= MIN_CERTAINTY


def is_available() -> bool:
    from importlib.util import find_spec

    return all(find_spec(name) for name in ("rapidocr", "onnxruntime"))


def recognize(pixels: Any) -> Recognition:
    """Return the text in an image, an array of RGB pixels, in reading order."""
    from PIL import Image

    from . import reading_order

    models = _load_models()
    image = Image.fromarray(pixels)
    read = [models.read_line(image, corners) for corners in models.find_lines(image)]
    # Each line counts by its length; of letters that the models don't know, nothing is read.
    lengths = [line.length for line in read]
    certain = sum(line.length * line.confidence for line in read if _is_known(line.text))
    lines = [line for line in read if line.confidence >= MIN_CONFIDENCE and line.text.strip()]
    return Recognition(
        text="\n".join(" ".join(row) for row in reading_order.rows(lines)),
        certainty=certain / sum(lengths) if sum(lengths) else 1.0,
    )


def _is_known(text: str) -> bool:
    letters = sum(map(str.isalnum, text))
    return letters > 2 * len(UNKNOWN_LETTERS.findall(text))


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
