"""Applies events to rows. The events are the source of truth; steps are derived from them."""

from .approval_events import VERDICT_BY_ACTION
from .handlers import HANDLERS, Projection
from .json_values import decode_json
from .run_events import STATUS_BY_REASON
from .search_tags import search_tag
from .waiting_time import Wait, queue_waits, queue_waits_of, waited_seconds

__all__ = [
    "HANDLERS",
    "Projection",
    "STATUS_BY_REASON",
    "VERDICT_BY_ACTION",
    "Wait",
    "decode_json",
    "queue_waits",
    "queue_waits_of",
    "search_tag",
    "waited_seconds",
]
