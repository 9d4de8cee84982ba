"""Which limits apply to a call, from rows in memory."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from agents.db.installation import configured
from agents.db.installation.setting import Setting
from agents.db.row_cache import RowCache
from agents.models import Quota

from .measures import MEASURES, counted_amount
from .payers import Payer

Measure = Quota.Measure
Window = Quota.Window
Key: TypeAlias = tuple[str, str]  # a measure and a window
ScopeKind: TypeAlias = Literal["user", "group", "agent", "model", "tool", "key", "all"]
Source: TypeAlias = Literal["user", "group", "default", "agent", "model", "tool", "key", "all"]

ALL: Literal["all"] = "all"
# Defaults of each user that are settings; others are rows without an owner.
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
# In the order of pages: what is counted, then per minute, day and month.
KEYS: tuple[Key, ...] = tuple((m, w.value) for m in MEASURES for w in Window)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedLimit:
    """A row; None is an explicit “no limit”. Money is in millionths of a dollar, time in ms."""

    amount: int | None
    changed_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A group, agent, model, tool or API key with limits, and its name."""

    pk: int
    name: str
    limits: dict[Key, SavedLimit] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SavedLimits:
    """All rows, by owner; models and tools by every name that calls use."""

    users: Mapping[int, dict[Key, SavedLimit]] = field(default_factory=dict)
    groups: Mapping[int, Owner] = field(default_factory=dict)  # for each member
    shared: Mapping[int, Owner] = field(default_factory=dict)  # for all members together
    agents: Mapping[int, Owner] = field(default_factory=dict)
    models: Mapping[str, Owner] = field(default_factory=dict)
    tools: Mapping[str, Owner] = field(default_factory=dict)
    keys: Mapping[int, Owner] = field(default_factory=dict)
    everyone: dict[Key, SavedLimit] = field(default_factory=dict)  # all users together
    defaults: dict[Key, SavedLimit] = field(default_factory=dict)  # each user

    @property
    def is_empty(self) -> bool:
        return not (self.users or any(self.owners) or self.everyone or self.defaults)

    @property
    def owners(self) -> tuple[Collection[Owner], ...]:
        """Owners besides users, by their kind."""
        kinds = (self.groups, self.shared, self.agents, self.models, self.tools, self.keys)
        return tuple(by_key.values() for by_key in kinds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit in force, the scope it counts, and where it comes from."""

    key: Key
    amount: int | None
    kind: ScopeKind
    pk: int = 0
    name: str = ""  # of the group, agent, model, tool or key
    source: Source = "default"
    group: int | None = None  # whose value it is, if it comes from one
    changed_at: datetime | None = None

    @property
    def scope(self) -> str:
        """The scope's name in counters."""
        return ALL if self.kind == ALL else f"{self.kind}:{self.pk}"

    @property
    def measure(self) -> str:
        return self.key[0]

    @property
    def window(self) -> str:
        return self.key[1]


def _load() -> SavedLimits:
    users: dict[int, dict[Key, SavedLimit]] = defaultdict(dict)
    owners: dict[str, dict[int, Owner]] = defaultdict(dict)
    models: dict[str, Owner] = {}
    unowned: dict[bool, dict[Key, SavedLimit]] = {True: {}, False: {}}
    rows = Quota.objects.select_related("group", "agent", "language_model", "tool", "api_key")
    for row in rows:
        key = (row.measure, row.window)
        limit = SavedLimit(
            amount=counted_amount(row.measure, row.limit), changed_at=row.changed_at
        )
        if row.user_id is not None:
            users[row.user_id][key] = limit
        elif row.group is not None:
            kind = "shared" if row.is_shared else "group"
            _owner(owners[kind], row.group.pk, row.group.name).limits[key] = limit
        elif row.agent is not None:
            _owner(owners["agent"], row.agent.pk, row.agent.name).limits[key] = limit
        elif row.language_model is not None:
            label = row.language_model.label
            name = row.language_model.model
            owner = _owner(owners["model"], row.language_model.pk, label)
            owner.limits[key] = limit
            models |= {label: owner} | ({} if name in models else {name: owner})
        elif row.tool is not None:
            _owner(owners["tool"], row.tool.pk, row.tool.name).limits[key] = limit
        elif row.api_key is not None:
            _owner(owners["key"], row.api_key.pk, row.api_key.name).limits[key] = limit
        else:
            unowned[row.is_shared][key] = limit
    return SavedLimits(
        users=dict(users),
        groups=owners["group"],
        shared=owners["shared"],
        agents=owners["agent"],
        models=models,
        tools={owner.name: owner for owner in owners["tool"].values()},
        keys=owners["key"],
        everyone=unowned[True],
        defaults=unowned[False],
    )


def _owner(owners: dict[int, Owner], pk: int, name: str) -> Owner:
    return owners.setdefault(pk, Owner(pk=pk, name=name))


ROWS = RowCache(Quota, _load, SavedLimits)


def is_any_set() -> bool:
    """Whether there is any limit, by what is in memory."""
    return not ROWS.get().is_empty or any(setting.value for setting in DEFAULTS.values())


def has_limits(measures: Collection[str]) -> bool:
    """Whether there is any limit of one of these measures."""
    saved = ROWS.get()
    if any(setting.value for (measure, _), setting in DEFAULTS.items() if measure in measures):
        return True
    if saved.is_empty:
        return False
    rows: Iterable[Iterable[Key]] = [
        *saved.users.values(),
        *(owner.limits for owners in saved.owners for owner in owners),
        saved.everyone,
        saved.defaults,
    ]
    return any(measure in measures for row in rows for measure, _window in row)


def needs_groups() -> bool:
    """Whether a user's groups decide about their limits."""
    saved = ROWS.get()
    return bool(saved.groups or saved.shared)


def resolve(user: int, groups: Collection[int]) -> list[Limit]:
    """Return a user's own limits, one per measure and window, also where there is none.

    Their own value beats those of groups, of which the most generous counts.
    """
    return [resolve_one(key, user, groups) for key in KEYS]


def resolve_one(key: Key, user: int, groups: Collection[int]) -> Limit:
    """Return a user's own limit of one measure and window."""
    saved = ROWS.get()
    if saved_limit := saved.users.get(user, {}).get(key):
        return _limit(key, saved_limit, "user", user, source="user")
    group_limits = {
        pk: saved.groups[pk]
        for pk in groups
        if pk in saved.groups and key in saved.groups[pk].limits
    }
    if group_limits:
        best = max(group_limits.values(), key=lambda owner: _generosity(owner, key))
        name = best.name
        saved_limit = best.limits[key]
        return _limit(key, saved_limit, "user", user, name, source="group", group=best.pk)
    saved_limit = saved.defaults.get(key)
    if saved_limit is None:
        setting = DEFAULTS.get(key)
        amount = None if setting is None else setting.value or None
        saved_limit = SavedLimit(amount=amount)
    return _limit(key, saved_limit, "user", user)


def _generosity(owner: Owner, key: Key) -> tuple[bool, int, int]:
    amount = owner.limits[key].amount
    return amount is None, amount or 0, -owner.pk


def limits_for(
    payer: Payer, groups: Collection[int] = (), *, model: str = "", tool: str = ""
) -> list[Limit]:
    """Return all limits that a call is counted against; without any, nothing is allocated."""
    saved = ROWS.get()
    applicable: list[Limit] = []
    if payer.user is not None:
        applicable += [
            limit for limit in resolve(payer.user, groups) if limit.amount is not None
        ]
        applicable += [
            limit
            for pk in groups
            if pk in saved.shared
            for limit in _of(saved.shared[pk], "group")
        ]
    if payer.agent is not None and payer.agent in saved.agents:
        applicable += _of(saved.agents[payer.agent], "agent")
    if model in saved.models:
        applicable += _of(saved.models[model], "model")
    for name in {tool, payer.tool} & saved.tools.keys():
        applicable += _of(saved.tools[name], "tool")
    if payer.key is not None and payer.key in saved.keys:
        applicable += _of(saved.keys[payer.key], "key")
    applicable += [
        _limit(key, limit, ALL, 0, source=ALL)
        for key, limit in saved.everyone.items()
        if limit.amount is not None
    ]
    return applicable


def saved_limits() -> list[Limit]:
    """Return every limit that isn't of a user: also of all users together."""
    saved = ROWS.get()
    models = {owner.pk: owner for owner in saved.models.values()}
    owners_by_kind: list[tuple[Iterable[Owner], ScopeKind]] = [
        (saved.shared.values(), "group"),
        (saved.agents.values(), "agent"),
        (models.values(), "model"),
        (saved.tools.values(), "tool"),
        (saved.keys.values(), "key"),
    ]
    everyone = [_limit(k, limit, ALL, 0, source=ALL) for k, limit in saved.everyone.items()]
    owned = (
        limit
        for owners, kind in owners_by_kind
        for owner in owners
        for limit in _of(owner, kind)
    )
    return [*owned, *everyone]


def _of(owner: Owner, kind: ScopeKind) -> list[Limit]:
    return [
        _limit(key, limit, kind, owner.pk, owner.name, source=kind)
        for key, limit in owner.limits.items()
        if limit.amount is not None
    ]


def _limit(
    key: Key,
    saved: SavedLimit,
    kind: ScopeKind,
    pk: int,
    name: str = "",
    *,
    source: Source = "default",
    group: int | None = None,
) -> Limit:
    return Limit(
        key=key,
        amount=saved.amount,
        kind=kind,
        pk=pk,
        name=name,
        source=source,
        group=group,
        changed_at=saved.changed_at,
    )
