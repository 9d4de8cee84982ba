"""Runs of the list in groups: by chat, or by what another package registers, such as problems.

A grouping gives each run a key; runs with the same key are listed together, below a heading.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from agents.models import Run
from agents.models.types import LazyText


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    title: str
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """A way to group runs.

    `key` returns the expression of a run's group, None for none, and `load_headings` the
    headings of groups that this user can see. A group without a heading has none.
    """

    name: str
    label: LazyText
    key: Callable[[User], Any]
    load_headings: Callable[[User, Collection[Any]], Mapping[Any, Heading]]
    is_available: Callable[[User], bool] = lambda user: True
    only: Callable[[User], Q] = lambda user: Q()  # the runs that it lists
    rest: LazyText = ""  # heading of the runs without a group
    is_chronological: bool = False


CHAT = Grouping(
    name="chat",
    label=_("Chat"),
    key=lambda user: F("topic"),
    load_headings=lambda user, topics: {},
    is_chronological=True,
)
_groupings = {CHAT.name: CHAT}


def register(grouping: Grouping) -> None:
    """Offer this grouping in the list."""
    _groupings[grouping.name] = grouping


def available(user: User) -> list[Grouping]:
    return [grouping for grouping in _groupings.values() if grouping.is_available(user)]


def parse(name: str, user: User) -> Grouping | None:
    """Return the grouping with this name; None if this user doesn't have it."""
    return next((grouping for grouping in available(user) if grouping.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The runs of a page that belong together, and how many there are on all pages."""

    rows: list[Any]
    heading: Heading | None = None
    count: int = 0
    failed: int = 0


def build_groups(
    grouping: Grouping, matches: Sequence[Any], rows: Iterable[Any], user: User
) -> list[Group]:
    """Return the rows of a page, which are in the order of their groups, as groups."""
    key_by_run = {match.pk: match.group for match in matches}
    counts = Counter(match.group for match in matches)
    failures = Counter(match.group for match in matches if match.status == Run.Status.FAILED)
    rows_by_key: dict[Any, list[Any]] = {}
    for row in rows:
        rows_by_key.setdefault(key_by_run[row.view.run.pk], []).append(row)
    headings = grouping.load_headings(user, rows_by_key.keys() - {None})
    return [
        Group(
            rows=group_rows,
            heading=_heading(grouping, key, headings, counts[key]),
            count=counts[key],
            failed=failures[key],
        )
        for key, group_rows in rows_by_key.items()
    ]


def _heading(
    grouping: Grouping, key: Any, headings: Mapping[Any, Heading], count: int
) -> Heading | None:
    if key is None:
        return Heading(title=str(grouping.rest))
    # A chat with one run is that run.
    return headings.get(key) or (Heading(title="") if count > 1 else None)
