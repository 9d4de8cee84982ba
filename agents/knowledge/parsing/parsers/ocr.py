"""Reads text from images (OCR) with the models in the `rapidocr` package."""

import logging
import os
import resource
import sys
from functools import cache
from typing import Any

from .values import UnreadableDocument

MIN_CONFIDENCE = 0.5
MAX_THREADS = 4
# The share of a line's width that is read: below 0.7, narrow letters run together.
LINE_WIDTH = 0.8
MAX_DETECTED_SIDE, MIN_DETECTED_SIDE = 1_280, 736
MISSING = "Text recognition isn't installed. Run `make run` on the server and try again."


def is_available() -> bool:
    from importlib.util import find_spec

    return all(find_spec(name) for name in ("rapidocr", "onnxruntime", "cv2"))


def recognize(pixels: Any) -> str:
    """Return the text in an image, an array of RGB pixels, from top to bottom."""
    engine = _engine()
    _set_detail(engine, pixels)
    found = engine(pixels)
    if found.boxes is None or found.txts is None:
        return ""
    pieces = [
        (box, text)
        for box, text, score in zip(found.boxes, found.txts, found.scores, strict=True)
        if score >= MIN_CONFIDENCE and text.strip()
    ]
    return "\n".join(_lines(pieces))


def _lines(pieces: list[tuple[Any, str]]) -> list[str]:
    """Join pieces at the same height, from left to right."""
    placed = sorted(
        (float(y.mean()), float(x.min()), float(y.max() - y.min()), text)
        for box, text in pieces
        for x, y in [box.T]
    )
    lines: list[list[tuple[float, str]]] = []
    last, height = -1e9, 0.0
    for middle, left, tall, text in placed:
        if not lines or middle - last > max(tall, height) / 2:
            lines.append([])
            last, height = middle, tall
        lines[-1].append((left, text))
    return [" ".join(text for _, text in sorted(line)) for line in lines]


@cache
def _engine() -> Any:
    """Load the models once per process: a second, and 300 MB."""
    if not is_available():
        raise UnreadableDocument(MISSING)
    _raise_limits()
    logging.getLogger("RapidOCR").setLevel(logging.ERROR)
    from rapidocr import RapidOCR

    # This process has a low priority, so that it only uses cores that are free.
    params = {
        "EngineConfig.onnxruntime.intra_op_num_threads": min(os.cpu_count() or 1, MAX_THREADS),
        "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        # Several lines at once are padded to the longest, and some of them were lost.
        "Rec.rec_batch_num": 1,
        "Global.log_level": "error",
    }
    engine = RapidOCR(params=params)
    _squeeze_lines(engine._load_rec_model())
    return engine


def _set_detail(engine: Any, pixels: Any) -> None:
    """Look for lines in a smaller copy of a large image, and in an enlarged small one."""
    detector, is_large = engine._load_det_model(), max(pixels.shape[:2]) > MAX_DETECTED_SIDE
    detector.limit_type = "max" if is_large else "min"
    detector.limit_side_len = MAX_DETECTED_SIDE if is_large else MIN_DETECTED_SIDE


def _squeeze_lines(recognizer: Any) -> None:
    """Narrow each line before it is recognized: that takes as long as it is wide."""
    import cv2

    resize = recognizer.resize_norm_img

    def squeeze(line: Any, max_ratio: float) -> Any:
        height, width = line.shape[:2]
        size = (max(round(width * LINE_WIDTH), 1), height)
        narrow = cv2.resize(line, size, interpolation=cv2.INTER_AREA)
        return resize(narrow, max_ratio * LINE_WIDTH)

    recognizer.resize_norm_img = squeeze


def _raise_limits() -> None:
    """Use the second, higher limits of memory and CPU time, which only the models need."""
    if sys.platform == "linux":
        for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU):
            _, most = resource.getrlimit(kind)
            resource.setrlimit(kind, (most, most))
