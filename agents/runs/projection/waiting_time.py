"""How long people were waited for."""

from collections.abc import Iterable
from datetime import datetime

from ..intervals import total_length, union


def waited_seconds(waits: Iterable[tuple[datetime, datetime | None]], until: datetime) -> float:
    """Return how many seconds people were waited for, counting overlaps once."""
    spans = [
        (requested.timestamp(), (answered or until).timestamp())
        for requested, answered in waits
    ]
    return total_length(union((start, min(end, until.timestamp())) for start, end in spans))
