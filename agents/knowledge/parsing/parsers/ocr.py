"""Reads text from images (OCR) with the models in the `rapidocr` package."""

import logging
import os
import resource
import sys
from functools import cache
from typing import Any

from agents.engine.sentences import Sentence as _

from .values import UnreadableDocument

MIN_CONFIDENCE = 0.5
MAX_THREADS = 4
# The share of a line's width that is read: below 0.7, narrow letters run together.
LINE_WIDTH = 0.8
MAX_DETECTED_SIDE = 1_280
MIN_DETECTED_SIDE = 736
MISSING = _("Text recognition isn't installed. Run `make run` on the server and try again.")


def is_available() -> bool:
    from importlib.util import find_spec

    return all(find_spec(name) for name in ("rapidocr", "onnxruntime", "cv2"))


def recognize(pixels: Any) -> str:
    """Return the text in an image, an array of RGB pixels, from top to bottom."""
    engine = _load_engine()
    # Look for lines in a smaller copy of a large image, and in an enlarged small one.
    is_large = max(pixels.shape[:2]) > MAX_DETECTED_SIDE
    detector = engine._load_det_model()
    detector.limit_type = "max" if is_large else "min"
    detector.limit_side_len = MAX_DETECTED_SIDE if is_large else MIN_DETECTED_SIDE
    result = engine(pixels)
    if result.boxes is None or result.txts is None:
        return ""
    pieces = sorted(
        (float(y.mean()), float(x.min()), float(y.max() - y.min()), text)
        for box, text, score in zip(result.boxes, result.txts, result.scores, strict=True)
        if score >= MIN_CONFIDENCE and text.strip()
        for x, y in [box.T]
    )
    # Pieces at the same height are joined, from left to right.
    lines: list[list[tuple[float, str]]] = []
    line_middle = -1e9
    line_height = 0.0
    for middle, left, height, text in pieces:
        if not lines or middle - line_middle > max(height, line_height) / 2:
            lines.append([])
            line_middle = middle
            line_height = height
        lines[-1].append((left, text))
    return "\n".join(" ".join(text for _, text in sorted(line)) for line in lines)


@cache
def _load_engine() -> Any:
    """Load the models once per process: a second, and 300 MB."""
    if not is_available():
        raise UnreadableDocument(MISSING)
    if sys.platform == "linux":
        # The second, higher limits of memory and CPU time, which only the models need.
        for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU):
            _, hard_limit = resource.getrlimit(kind)
            resource.setrlimit(kind, (hard_limit, hard_limit))
    logging.getLogger("RapidOCR").setLevel(logging.ERROR)
    import cv2
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
    recognizer = engine._load_rec_model()
    resize = recognizer.resize_norm_img

    def squeeze(line: Any, max_ratio: float) -> Any:
        """Narrow a line before it is recognized: that takes as long as it is wide."""
        height, width = line.shape[:2]
        size = (max(round(width * LINE_WIDTH), 1), height)
        narrow = cv2.resize(line, size, interpolation=cv2.INTER_AREA)
        return resize(narrow, max_ratio * LINE_WIDTH)

    recognizer.resize_norm_img = squeeze
    return engine
