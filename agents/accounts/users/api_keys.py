"""API keys on pages: what a key is for and has used, and making and revoking them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext, pgettext_lazy

from agents.access import api_keys, audit
from agents.console.metering.budgets import BudgetRow, budget_rows
from agents.db.installation import configured
from agents.metering.budgets.limits import Key
from agents.models import ApiKey, Quota
from agents.models.api_keys import ApiKeyQuerySet
from agents.models.types import LazyText

Scope = ApiKey.Scope

SCOPE_DESCRIPTIONS: dict[str, LazyText] = {
    Scope.ASK: _("Send messages, start runs and stop them."),
    Scope.READ: _("Read your chats, runs and files."),
    Scope.READ_ALL: _("Also other users’ runs that you can review, with personal data masked."),
    Scope.APPROVE: _("Approve or reject tool calls, and answer agents’ questions."),
    Scope.CONFIGURE: _("Change what agents are, know and are tested with."),
}
SERVICE_DESCRIPTIONS: dict[str, LazyText] = SCOPE_DESCRIPTIONS | {
    Scope.READ: _("Read its own chats, runs and files."),
    Scope.READ_ALL: _("Also users’ runs that it can review, with personal data masked."),
}
STATES: dict[str, tuple[LazyText, str]] = {
    "active": (pgettext_lazy("API key", "active"), "green"),
    "expired": (pgettext_lazy("API key", "expired"), "amber"),
    "revoked": (pgettext_lazy("API key", "revoked"), "red"),
    "stopped": (pgettext_lazy("API key", "not working"), "amber"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """What a key is made with; limits are as in rows of `Quota`."""

    name: str
    scopes: tuple[str, ...]
    expires_at: datetime | None = None
    requests_per_minute: int | None = None
    limits: Mapping[Key, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRow:
    """A key on a page, with its limits and what is used of them."""

    key: ApiKey
    budgets: tuple[BudgetRow, ...] = ()

    @property
    def state(self) -> str:
        return state_of(self.key)

    @property
    def label(self) -> LazyText:
        return STATES[self.state][0]

    @property
    def tone(self) -> str:
        return STATES[self.state][1]

    @property
    def scope_labels(self) -> list[str]:
        return scope_labels(self.key)

    @property
    def limits(self) -> list[str]:
        limits = [_now("%(limit)s (used: %(used)s)") % _amounts(row) for row in self.budgets]
        if most := self.key.requests_per_minute:
            sentence = ngettext(
                "%(count)d request per minute", "%(count)d requests per minute", most
            )
            limits.insert(0, sentence % {"count": most})
        return limits


def state_of(key: ApiKey) -> str:
    if key.revoked_at is not None:
        return "revoked"
    if key.expires_at is not None and key.expires_at <= timezone.now():
        return "expired"
    is_personal = not key.is_service and key.app_id is None
    if not key.user.is_active or (is_personal and not configured.PERSONAL_API_KEYS.value):
        return "stopped"
    return "active"


def in_state(state: str) -> Q:
    """Return a filter for keys in this state."""
    is_expired = Q(expires_at__lte=timezone.now())
    is_stopped = Q(user__is_active=False)
    if not configured.PERSONAL_API_KEYS.value:
        is_stopped |= Q(is_service=False, app=None)
    return {
        "active": Q(revoked_at=None) & ~is_expired & ~is_stopped,
        "expired": Q(revoked_at=None) & is_expired,
        "revoked": ~Q(revoked_at=None),
        "stopped": Q(revoked_at=None) & ~is_expired & is_stopped,
    }[state]


def scope_labels(key: ApiKey) -> list[str]:
    """Return in words what a key may do, in the order of forms."""
    return [str(scope.label) for scope in Scope if scope in key.scopes]


def offered_scopes(user: User) -> list[ApiKey.Scope]:
    """Return the scopes that this user's own permissions include."""
    return [scope for scope in Scope if api_keys.may_have(user, scope)]


def personal_keys(user: User) -> ApiKeyQuerySet:
    """Return a user's own keys, without those of connected apps."""
    return user.api_keys.filter(app=None, is_service=False)


def rows(keys: QuerySet[ApiKey]) -> list[KeyRow]:
    """Return keys with their limits and what is used of them, read together."""
    found = list(keys.select_related("user"))
    by_key: dict[int | None, list[BudgetRow]] = {}
    if found:
        quotas = Quota.objects.filter(api_key__in=found).select_related("api_key")
        for row in budget_rows(quotas):
            by_key.setdefault(row.row.api_key_id, []).append(row)
    return [KeyRow(key=key, budgets=tuple(by_key.get(key.pk, ()))) for key in found]


@transaction.atomic
def make(
    actor: User, user: User, new: NewKey, *, is_service: bool = False
) -> tuple[ApiKey, str]:
    """Save a key with its limits; return it and its secret, which is known only now."""
    key, token = api_keys.create(
        user,
        new.name,
        new.scopes,
        is_service=is_service,
        expires_at=new.expires_at,
        requests_per_minute=new.requests_per_minute,
    )
    for (measure, window), limit in new.limits.items():
        Quota.objects.create(api_key=key, measure=measure, window=window, limit=limit)
    audit.record(
        actor,
        audit.API_KEY_CREATED,
        key,
        scopes=key.scopes,
        expires_at=None if new.expires_at is None else new.expires_at.isoformat(),
        **{audit.KEY_DETAIL: key.beginning},
    )
    return key, token


@transaction.atomic
def revoke(actor: User, keys: Iterable[ApiKey]) -> int:
    """Revoke keys that aren't yet, at once; return how many."""
    revoked = [key for key in keys if api_keys.revoke(ApiKey.objects.filter(pk=key.pk))]
    details = [(key, {audit.KEY_DETAIL: key.beginning}) for key in revoked]
    if details:
        audit.record_all(actor, audit.API_KEY_REVOKED, details)
    return len(revoked)


def _amounts(row: BudgetRow) -> dict[str, str]:
    return {"limit": row.limit, "used": row.spent}
