"""Accounts of services: made with their first key; nobody signs in with them."""

from collections.abc import Iterable

from django.contrib.auth.models import Group, User
from django.db import transaction
from django.utils.text import slugify
from django.utils.translation import gettext as _

from agents.access import api_keys as key_access
from agents.access import audit
from agents.models import ApiKey
from agents.models.catalog.rights import Role

from ..authentication import factors
from . import api_keys, roles
from .api_keys import NewKey

PREFIX = "service-"
MAX_NAME_CHARS = 60


class ScopeNotAllowed(Exception):
    """Raised when the account's permissions don't include a scope; the message says which."""


@transaction.atomic
def make_key(
    actor: User, new: NewKey, account: User | None, role: Role, groups: Iterable[Group]
) -> tuple[ApiKey, str]:
    """Save a service's key, with a new account of this role and groups unless it has one."""
    account = account or _create_account(actor, new.name, role, groups)
    lacking = [
        str(ApiKey.Scope(scope).label)
        for scope in new.scopes
        if not key_access.may_have(account, scope)
    ]
    if lacking:
        raise ScopeNotAllowed(
            _("The account’s role and groups don’t allow: %(scopes)s.")
            % {"scopes": ", ".join(lacking)}
        )
    return api_keys.make(actor, account, new, is_service=True)


def _create_account(actor: User, name: str, role: Role, groups: Iterable[Group]) -> User:
    account = User.objects.create_user(_free_username(name))
    account.groups.add(*groups)
    roles.set_role(account, role)
    audited = factors.audit_subject(account)
    names = sorted(account.groups.values_list("name", flat=True))
    audit.record(actor, audit.PERSON_ADDED, audited, by="service", role=role, groups=names)
    return account


def _free_username(name: str) -> str:
    base = PREFIX + (slugify(name, allow_unicode=True)[:MAX_NAME_CHARS] or "key")
    taken = set(
        User.objects.filter(username__startswith=base).values_list("username", flat=True)
    )
    numbered = (f"{base}-{number}" for number in range(2, len(taken) + 3))
    return next(name for name in (base, *numbered) if name not in taken)
