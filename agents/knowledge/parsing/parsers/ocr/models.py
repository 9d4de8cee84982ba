"""The models in the `rapidocr` package, on ONNX Runtime: one finds lines, one reads them.

Only the model files of that package are used: docs/decisions/text-recognition.md.
"""

import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from .boxes import find_rectangles

MAX_THREADS = 4
MAX_DETECTED_SIDE = 1_280
MIN_DETECTED_SIDE = 736
# A narrow image would become as long as memory allows.
MAX_ENLARGED_SIDE = 2_944
# The detection model halves its input five times.
SIDE_STEP = 32
# The detection model misses lines that fill an image, so these get a margin.
MIN_IMAGE_HEIGHT = 30
MAX_IMAGE_RATIO = 8
LINE_HEIGHT = 48
# The share of a line's width that is read: below 0.7, narrow letters run together.
LINE_WIDTH = 0.8
MIN_LINE_WIDTH = 256
# A line that is read with less confidence may be upside down.
UPRIGHT_CONFIDENCE = 0.85


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line as it was read, with its corners from where its text begins, clockwise."""

    text: str
    confidence: float
    corners: NDArray[Any]

    @property
    def length(self) -> float:
        return float(np.linalg.norm(self.corners[1] - self.corners[0]))


class TextModels:
    """Both models, loaded."""

    def __init__(self) -> None:
        self._detection = _session("PP-OCRv6_det_small.onnx")
        self._recognition = _session("PP-OCRv6_rec_small.onnx")
        metadata = self._recognition.get_modelmeta().custom_metadata_map
        # The first class of the model says that there is no letter.
        self._letters = ["", *metadata["character"].splitlines(), " "]

    def find_lines(self, image: Image.Image) -> list[NDArray[Any]]:
        """Return the corners of each line as (x, y), from where its text begins, clockwise."""
        margin = _margin(image)
        if margin:
            padded = Image.new("RGB", (image.width, image.height + 2 * margin))
            padded.paste(image, (0, margin))
        else:
            padded = image
        # A small copy of a large image is enough, and a small image is enlarged.
        longest = max(padded.size)
        if longest > MAX_DETECTED_SIDE:
            scale = MAX_DETECTED_SIDE / longest
        else:
            enlarged = min(MIN_DETECTED_SIDE / min(padded.size), MAX_ENLARGED_SIDE / longest)
            scale = max(enlarged, 1)
        size = [max(round(side * scale / SIDE_STEP), 1) * SIDE_STEP for side in padded.size]
        detected = padded.resize((size[0], size[1]), Image.Resampling.BILINEAR)
        probabilities = _run(self._detection, _tensor(detected))[0, 0]
        ratio = np.divide(padded.size, size)
        largest = np.array(image.size) - 1
        return [
            np.clip(rectangle.corners * ratio - (0, margin), 0, largest)
            for rectangle in find_rectangles(probabilities)
        ]

    def read_line(self, image: Image.Image, corners: NDArray[Any]) -> Line:
        """Return what is between four corners, read the other way round if that is clearer."""
        cut = _cut(image, corners)
        text, confidence = self._read(cut)
        if confidence < UPRIGHT_CONFIDENCE:
            turned_text, turned = self._read(cut.transpose(Image.Transpose.ROTATE_180))
            if turned > confidence:
                corners = np.roll(corners, 2, axis=0)
                return Line(text=turned_text, confidence=turned, corners=corners)
        return Line(text=text, confidence=confidence, corners=corners)

    def _read(self, line: Image.Image) -> tuple[str, float]:
        """Return a line's text and how sure the model is of it, 0 to 1."""
        width = max(round(line.width * LINE_HEIGHT / line.height * LINE_WIDTH), 1)
        narrow = line.resize((width, LINE_HEIGHT), Image.Resampling.BILINEAR)
        probabilities = _run(self._recognition, _tensor(narrow, MIN_LINE_WIDTH))[0]
        # One class per column: a letter goes on until another, or none, follows (CTC).
        classes = probabilities.argmax(axis=1)
        is_letter = classes != 0
        is_letter[1:] &= classes[1:] != classes[:-1]
        if not is_letter.any():
            return "", 0.0
        text = "".join(self._letters[number] for number in classes[is_letter])
        return text, float(probabilities.max(axis=1)[is_letter].mean())


def _session(name: str) -> Any:
    import onnxruntime

    package = find_spec("rapidocr")
    assert package is not None
    assert package.submodule_search_locations
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.enable_cpu_mem_arena = False
    # This process has a low priority, so that it only uses cores that are free.
    options.intra_op_num_threads = min(os.cpu_count() or 1, MAX_THREADS)
    options.inter_op_num_threads = 1
    path = Path(package.submodule_search_locations[0], "models", name)
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _run(session: Any, tensor: NDArray[np.float32]) -> NDArray[np.float32]:
    result: NDArray[np.float32] = session.run(None, {session.get_inputs()[0].name: tensor})[0]
    return result


def _tensor(image: Image.Image, min_width: int = 0) -> NDArray[np.float32]:
    """Return an image as the models take it: -1 to 1, channels first, widened with gray."""
    pixels = np.asarray(image, dtype=np.float32).transpose(2, 0, 1) / 127.5 - 1
    missing = max(min_width - image.width, 0)
    return np.pad(pixels, ((0, 0), (0, 0), (0, missing)))[np.newaxis]


def _margin(image: Image.Image) -> int:
    """Return how many pixels a flat image lacks above and below."""
    is_flat = image.width > image.height * MAX_IMAGE_RATIO
    if image.height > MIN_IMAGE_HEIGHT and not is_flat:
        return 0
    wanted = 2 * max(image.width // MAX_IMAGE_RATIO, MIN_IMAGE_HEIGHT)
    return (wanted - image.height) // 2


def _cut(image: Image.Image, corners: NDArray[Any]) -> Image.Image:
    """Return what is between four corners as an upright image."""
    top_left, top_right, bottom_right, bottom_left = corners
    width = max(round(float(np.linalg.norm(top_right - top_left))), 1)
    height = max(round(float(np.linalg.norm(bottom_left - top_left))), 1)
    quad = np.concatenate([top_left, bottom_left, bottom_right, top_right])
    return image.transform(
        (width, height),
        Image.Transform.QUAD,
        data=quad.tolist(),
        resample=Image.Resampling.BICUBIC,
    )
