"""Which quotas are in force for a user: their own, their groups', or the installation's."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from agents.db.row_cache import RowCache
from agents.installation import configured
from agents.installation.setting import Setting
from agents.models import Quota

Measure, Window = Quota.Measure, Quota.Window
Key: TypeAlias = tuple[str, str]  # a measure and a window
Limits: TypeAlias = dict[Key, int | None]
Source: TypeAlias = Literal["user", "group", "default"]

DEFAULTS: dict[Key, Setting[int | None]] = {
    (Measure.RUNS, Window.DAY): configured.RUNS_PER_DAY,
    (Measure.RUNS, Window.MONTH): configured.RUNS_PER_MONTH,
    (Measure.MESSAGES, Window.DAY): configured.MESSAGES_PER_DAY,
    (Measure.MESSAGES, Window.MONTH): configured.MESSAGES_PER_MONTH,
    (Measure.TOKENS, Window.DAY): configured.TOKENS_PER_DAY,
    (Measure.TOKENS, Window.MONTH): configured.TOKENS_PER_MONTH,
    (Measure.COST, Window.DAY): configured.COST_PER_DAY,
    (Measure.COST, Window.MONTH): configured.COST_PER_MONTH,
}


@dataclass(frozen=True, slots=True)
class SavedQuotas:
    """All rows, by user and by group; None is an explicit “no limit”."""

    users: Mapping[int, Limits] = field(default_factory=dict)
    groups: Mapping[int, Limits] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit in force, and where it comes from."""

    key: Key
    amount: int | None
    source: Source
    group: int | None = None  # the most generous one


def _load() -> SavedQuotas:
    users: dict[int, Limits] = defaultdict(dict)
    groups: dict[int, Limits] = defaultdict(dict)
    columns = ("user_id", "group_id", "measure", "window", "limit")
    for user, group, measure, window, amount in Quota.objects.values_list(*columns):
        found = users[user] if user is not None else groups[group]
        found[measure, window] = amount
    return SavedQuotas(users=dict(users), groups=dict(groups))


ROWS = RowCache(Quota, _load, SavedQuotas)


def is_any_set() -> bool:
    """Whether anybody has a quota, by what is in memory."""
    saved = ROWS.get()
    return bool(saved.users or saved.groups) or bool(_set_defaults())


def has_limits(measures: Collection[str]) -> bool:
    """Whether anybody has a quota of one of these measures."""
    saved = ROWS.get()
    rows = [*saved.users.values(), *saved.groups.values(), _set_defaults()]
    return any(measure in measures for row in rows for measure, _window in row)


def widest_window() -> str:
    """Return the longest window that any quota has."""
    saved = ROWS.get()
    rows = [*saved.users.values(), *saved.groups.values(), _set_defaults()]
    return (
        Window.MONTH if any(w == Window.MONTH for row in rows for _m, w in row) else Window.DAY
    )


def _set_defaults() -> Limits:
    values = {key: setting.value for key, setting in DEFAULTS.items()}
    return {key: value for key, value in values.items() if value}


def resolve(user: int, groups: Collection[int]) -> list[Limit]:
    """Return the limits of a user, one per measure and window.

    Their own value beats those of groups, of which the most generous counts.
    """
    return [resolve_one(key, user, groups) for key in DEFAULTS]


def resolve_one(key: Key, user: int, groups: Collection[int]) -> Limit:
    """Return the limit of one measure and window."""
    saved = ROWS.get()
    if key in (own := saved.users.get(user, {})):
        return Limit(key=key, amount=own[key], source="user")
    theirs = {g: saved.groups[g][key] for g in groups if key in saved.groups.get(g, {})}
    if theirs:
        group = max(theirs, key=lambda g: (theirs[g] is None, theirs[g] or 0, -g))
        return Limit(key=key, amount=theirs[group], source="group", group=group)
    return Limit(key=key, amount=DEFAULTS[key].value or None, source="default")
