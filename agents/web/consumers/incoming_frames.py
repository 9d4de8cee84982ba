"""Frames that a page sends."""

import json
from typing import Any

from django.utils.translation import gettext_lazy as _

MAX_FRAME_CHARS = 1_048_576


class BadFrame(Exception):
    """Raised when the browser sends an invalid frame."""


def parse_frame(text: str | None) -> dict[str, Any]:
    if text is None:
        raise BadFrame(_("This page accepts text only."))
    if len(text) > MAX_FRAME_CHARS:
        raise BadFrame(_("This message is too long to send."))
    try:
        frame = json.loads(text)
    except (ValueError, RecursionError):
        raise BadFrame(
            _("The page sent an invalid request. Reload it and try again.")
        ) from None
    if not isinstance(frame, dict):
        raise BadFrame(_("The page sent an invalid request. Reload it and try again."))
    return frame
