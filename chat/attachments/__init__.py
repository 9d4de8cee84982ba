"""Files in chats: uploaded in the composer, read in the background, sent with a message."""

from .binding import (
    attach,
    claim,
    copies_of,
    detach,
    ids_of,
    names_of,
    parse_ids,
    rebind,
    refs_of,
    sent_with,
)
from .reading import retry
from .uploads import receive, remove

__all__ = [
    "attach",
    "claim",
    "copies_of",
    "detach",
    "ids_of",
    "names_of",
    "parse_ids",
    "rebind",
    "receive",
    "refs_of",
    "remove",
    "retry",
    "sent_with",
]
