"""Scopes of limits: what a row is for, by name and in words."""

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.models import Quota
from agents.models.types import LazyText

from .limits import ALL, Limit, SavedLimit, Source
from .measures import counted_amount

DEFAULT = "default"
GROUP = "group"
SHARED = "group_shared"
# In the order of pages, from the widest to the narrowest.
SCOPES: dict[str, LazyText] = {
    ALL: gettext_lazy("All users together"),
    DEFAULT: gettext_lazy("Each user (default)"),
    SHARED: gettext_lazy("A group together"),
    GROUP: gettext_lazy("Each member of a group"),
    "user": gettext_lazy("A user"),
    "agent": gettext_lazy("An agent"),
    "model": gettext_lazy("A model"),
    "tool": gettext_lazy("A tool"),
    "key": gettext_lazy("An API key"),
}
OWNER_FIELDS = {
    SHARED: "group",
    GROUP: "group",
    "user": "user",
    "agent": "agent",
    "model": "language_model",
    "tool": "tool",
    "key": "api_key",
}
# Scopes in which several people use one limit.
SHARED_SCOPES = (ALL, SHARED)


def scope_of(row: Quota) -> str:
    """Return the scope of a row."""
    if row.user_id is not None:
        return "user"
    if row.group_id is not None:
        return SHARED if row.is_shared else GROUP
    if row.agent_id is not None:
        return "agent"
    if row.language_model_id is not None:
        return "model"
    if row.tool_id is not None:
        return "tool"
    if row.api_key_id is not None:
        return "key"
    return ALL if row.is_shared else DEFAULT


def owner_name(row: Quota) -> str:
    """Return the name of the user, group, agent, model, tool or API key."""
    owner: Any = row.owner
    if owner is None:
        return ""
    return str(getattr(owner, "label", "") or getattr(owner, "name", "") or owner)


def title(row: Quota) -> str:
    """Return what a row is for, as a heading."""
    names = {
        GROUP: _("Each member of %(name)s"),
        SHARED: _("%(name)s together"),
    }
    scope = scope_of(row)
    pattern = names.get(scope, "%(name)s")
    return pattern % {"name": owner_name(row)} if row.owner else str(SCOPES[scope])


def counted_limit(row: Quota) -> Limit | None:
    """Return the row as a limit with a counter; None if each of several users has one."""
    scope = scope_of(row)
    if scope in {DEFAULT, GROUP}:
        return None
    saved = SavedLimit(amount=counted_amount(row.measure, row.limit), changed_at=row.changed_at)
    kind: Any = GROUP if scope == SHARED else scope
    source: Source = kind
    return Limit(
        key=(row.measure, row.window),
        amount=saved.amount,
        kind=kind,
        pk=getattr(row.owner, "pk", 0) or 0,
        name=owner_name(row),
        source=source,
        changed_at=row.changed_at,
    )
