"""Pages of lists: newest first, continued by an opaque cursor.

A cursor names the last item of a page, so that what is added or deleted meanwhile neither
repeats nor hides another item.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as InvalidBase64
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from django.db.models import Model, QuerySet
from django.utils.translation import gettext as _
from ninja import Schema
from pydantic import Field

from agents.web.api_errors import ApiError

from .schemas import Text

MAX_ITEMS = 100
CURSOR = re.compile(rb"v1:([1-9][0-9]{0,17})")

Item = TypeVar("Item")
Row = TypeVar("Row", bound=Model)


class Page(Schema, Generic[Item]):
    """A page of a list."""

    items: list[Item]
    next_cursor: str | None = Field(None, description="Absent on the last page.")


class PageQuery(Schema):
    limit: int = Field(50, ge=1, le=MAX_ITEMS, description="Items per page.")
    cursor: Text = Field(
        "", max_length=100, description="The `next_cursor` of the page before this one."
    )

    @property
    def last(self) -> int | None:
        """The last item of the page before; None on the first page."""
        return read_cursor(self.cursor) if self.cursor else None


def make_cursor(pk: int) -> str:
    return urlsafe_b64encode(f"v1:{pk}".encode()).decode().rstrip("=")


def read_cursor(text: str) -> int:
    """Return the item that a cursor names; raise ApiError if it isn't one."""
    try:
        decoded = urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4))
    except (InvalidBase64, ValueError):
        decoded = b""
    match = CURSOR.fullmatch(decoded)
    if match is None:
        raise ApiError(
            422, _("This cursor is invalid. Start again without one."), "invalid_cursor"
        )
    return int(match[1])


def page_of(rows: QuerySet[Row], query: PageQuery, to_item: Callable[[Row], Any]) -> Page[Any]:
    """Return a page of rows, newest first."""
    if query.last is not None:
        rows = rows.filter(pk__lt=query.last)
    found = list(rows.order_by("-pk")[: query.limit + 1])
    return to_page(found, query, to_item, lambda row: row.pk)


def to_page(
    found: Sequence[Any],
    query: PageQuery,
    to_item: Callable[[Any], Any],
    key: Callable[[Any], int],
) -> Page[Any]:
    """Return the page of what was found: up to one more than it has."""
    listed = found[: query.limit]
    more = make_cursor(key(listed[-1])) if len(found) > query.limit else None
    return Page(items=[to_item(row) for row in listed], next_cursor=more)
