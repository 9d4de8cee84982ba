"""The columns of the trace list: labels, sort keys, and values for exports."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import User
from django.db.models import F
from django.utils.translation import gettext_lazy as _

from agents.models.runs.runs import ACTIVE_SECONDS, STEP_COUNT
from agents.models.types import LazyText

from ..models import SavedView

if TYPE_CHECKING:
    from .listing import RunRow

# The name of the view that holds a user's own columns; named views have names.
OWN_COLUMNS = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column; without a sort key, the list can't be sorted by it. A title explains it.

    Only users with what it needs have it: others' runs, or the right to review.
    """

    name: str
    label: LazyText
    value: Callable[["RunRow"], Any]
    key: Any = None
    is_number: bool = False
    starts_descending: bool = False
    title: LazyText = ""
    needs: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sort:
    """An order other than newest first."""

    column: Column
    is_descending: bool

    def __str__(self) -> str:
        return f"-{self.column.name}" if self.is_descending else self.column.name


def _number(
    name: str, label: LazyText, key: Any, value: Callable[["RunRow"], Any], title: LazyText = ""
) -> Column:
    return Column(
        name=name,
        label=label,
        value=value,
        key=key,
        is_number=True,
        starts_descending=True,
        title=title,
    )


PEOPLE = "people"
REVIEW = "review"
ALL_COLUMNS = [
    Column(name="id", label=_("Run"), key=F("pk"), value=lambda row: row.view.run.pk),
    Column(
        name="status",
        label=_("Status"),
        key=F("status"),
        value=lambda row: row.view.run.status,
    ),
    Column(name="question", label=_("Question"), value=lambda row: row.view.run.query),
    Column(name="error", label=_("Error"), value=lambda row: row.sentence),
    Column(
        name="agent",
        label=_("Agent"),
        key=F("agent_name"),
        value=lambda row: row.view.run.agent_name,
    ),
    Column(
        name="version",
        label=_("Version"),
        key=F("agent_version"),
        value=lambda row: row.view.run.agent_version,
        is_number=True,
        starts_descending=True,
    ),
    Column(
        name="model", label=_("Model"), key=F("model"), value=lambda row: row.view.run.model
    ),
    Column(
        name="user",
        label=_("User"),
        key=F("user__username"),
        value=lambda row: row.view.user_name,
        needs=PEOPLE,
    ),
    Column(
        name="key",
        label=_("API key"),
        key=F("api_key__name"),
        value=lambda row: row.view.api_key_name,
    ),
    _number(
        "steps",
        _("Turns"),
        STEP_COUNT,
        lambda row: row.view.run.step_count,
        _("Requests to the model or, with a plan, its tasks"),
    ),
    _number("tools", _("Tools"), F("tool_calls"), lambda row: row.view.run.tool_calls),
    _number(
        "time",
        _("Active time"),
        ACTIVE_SECONDS,
        lambda row: row.view.run.active,
        _("Active time, excluding time waiting for users"),
    ),
    _number("waited", _("Waiting time"), F("waited"), lambda row: row.view.run.waited),
    _number(
        "tokens",
        _("Tokens"),
        F("prompt_tokens") + F("completion_tokens"),
        lambda row: row.view.tokens,
    ),
    _number("cost", _("Cost"), F("cost"), lambda row: row.view.run.cost),
    Column(
        name="labels",
        label=_("Labels"),
        value=lambda row: ", ".join(row.labels),
        needs=REVIEW,
    ),
    Column(
        name="score",
        label=_("Score"),
        value=lambda row: row.score,
        is_number=True,
        title=_("Score of the run in its experiment"),
        needs=REVIEW,
    ),
    Column(name="rating", label=_("Rating"), value=lambda row: row.ups - row.downs),
    Column(
        name="started",
        label=_("Started"),
        key=F("pk"),
        starts_descending=True,
        value=lambda row: row.view.run.started_at.isoformat(),
    ),
]
COLUMNS = {column.name: column for column in ALL_COLUMNS}
DEFAULT_COLUMNS = (
    *("status", "question", "agent", "user"),
    *("time", "tokens", "cost", "rating", "started"),
)
# The question links to the run, so it is always there.
FIXED_COLUMN = "question"


def available(rights: Collection[str]) -> list[Column]:
    """Return the columns a user can choose."""
    return [column for column in ALL_COLUMNS if not column.needs or column.needs in rights]


def parse(names: Iterable[str], rights: Collection[str]) -> list[Column]:
    """Return the known columns among these, in the list's order."""
    chosen_names = {*names, FIXED_COLUMN}
    return [column for column in available(rights) if column.name in chosen_names]


def chosen(text: str, own: str, rights: Collection[str]) -> list[Column]:
    """Return the columns in the URL or, without any, the user's own."""
    return parse(split(text) or split(own) or DEFAULT_COLUMNS, rights)


def save_own(user: User, columns: Sequence[Column]) -> None:
    """Save the user's own columns; the default ones need no row."""
    own = SavedView.objects.filter(user=user, name=OWN_COLUMNS)
    # Not everyone has the column of users.
    if {"user", *(column.name for column in columns)} == {*DEFAULT_COLUMNS}:
        own.delete()
    else:
        own.update_or_create({"columns": join(columns)}, user=user, name=OWN_COLUMNS)


def parse_sort(text: str, rights: Collection[str]) -> Sort | None:
    """Return the order; None for newest first, and for a column that can't be sorted."""
    name = text.removeprefix("-")
    column = next((c for c in available(rights) if c.name == name), None)
    if column is None or column.key is None or text == "-started":
        return None
    return Sort(column=column, is_descending=text.startswith("-"))


def split(text: str) -> list[str]:
    return [name for name in text.split(",") if name in COLUMNS]


def join(columns: Iterable[Column]) -> str:
    return ",".join(column.name for column in columns)
