"""API keys: making, finding and checking them."""

import hashlib
import logging
import math
import secrets
import string
import time
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import OperationalError
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from agents.db.compiled_queries import compiled_query
from agents.db.installation import configured
from agents.models import ApiKey, Run

logger = logging.getLogger(__name__)

TOKEN_PREFIX = "ash_"
TOKEN_CHARS = 40  # of 62: 238 bits
SHOWN_CHARS = 10
BEARER = "bearer "
# How long an open stream may trust that its key isn't revoked.
RECHECK_SECONDS = 1.0
MAX_RECHECKED = 1_000
NEVER = (-math.inf, None)
USED_EVERY = timedelta(minutes=1)
# What a key's user needs for these scopes, each time it is used.
SCOPE_PERMISSIONS = {
    ApiKey.Scope.READ_ALL: "agents.review_runs",
    ApiKey.Scope.CONFIGURE: "agents.change_agent",
}
STAFF_SCOPES = frozenset({ApiKey.Scope.CONFIGURE})

_current: ContextVar[ApiKey | None] = ContextVar("api_key", default=None)


def create(user: User, name: str, scopes: Iterable[str], **columns: Any) -> tuple[ApiKey, str]:
    """Save a new key; return it and its secret, which is known only now."""
    token = new_token()
    key = ApiKey.objects.create(
        user=user, name=name, scopes=sorted(set(scopes)), **saved_columns(token), **columns
    )
    return key, token


def new_token(prefix: str = TOKEN_PREFIX, length: int = TOKEN_CHARS) -> str:
    """Return a new secret, which begins recognizably."""
    alphabet = string.ascii_letters + string.digits
    return prefix + "".join(secrets.choice(alphabet) for _ in range(length))


def saved_columns(token: str) -> dict[str, str]:
    """Return what a row saves of its secret."""
    return {"prefix": token[:SHOWN_CHARS], "digest": digest_of(token)}


def digest_of(token: str) -> str:
    """Return what is saved of a token. It is random, so it needs no slow hash."""
    return hashlib.sha256(token.encode()).hexdigest()


def may_have(user: User, scope: str) -> bool:
    """Whether the user's own permissions include what this scope allows."""
    permission = SCOPE_PERMISSIONS.get(ApiKey.Scope(scope))
    if scope in STAFF_SCOPES and not user.is_staff:
        return False
    return permission is None or user.has_perm(permission)


def find(authorization: str) -> ApiKey | None:
    """Return the usable key that an Authorization header proves, with its user.

    Its scopes are those that its user's permissions still include.
    """
    if not authorization.lower().startswith(BEARER):
        return None
    token = authorization[len(BEARER) :].strip()
    return _as_usable(next(iter(_keys_by_digest(digest_of(token))), None))


def _as_usable(key: ApiKey | None) -> ApiKey | None:
    """Return a key that was just read, with what it allows now, if it works."""
    if key is None or not key.is_usable:
        return None
    is_personal = not key.is_service and key.app_id is None
    if is_personal and not configured.PERSONAL_API_KEYS.value:
        return None
    key.scopes = [scope for scope in key.scopes if may_have(key.user, scope)]
    return key


@compiled_query
def _keys_by_digest(digest: str) -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(digest=digest).select_related("user", "user__profile")


def note_use(key: ApiKey) -> None:
    """Save that the key was used, at most once a minute."""
    current_time = timezone.now()
    if key.last_used_at is None or current_time - key.last_used_at > USED_EVERY:
        try:
            ApiKey.objects.filter(pk=key.pk).update(last_used_at=current_time)
        except OperationalError as error:  # it must not affect the request
            logger.warning("Can't save the last use of an API key: %s", error)
        key.last_used_at = current_time


def revoke(keys: QuerySet[ApiKey], at: datetime | None = None) -> int:
    """Revoke keys at once; open streams end within a second."""
    return keys.filter(revoked_at=None).update(revoked_at=at or timezone.now())


# How many streams each key has open in this process.
open_streams: Counter[int] = Counter()
_checked: OrderedDict[int, tuple[float, ApiKey | None]] = OrderedDict()


@contextmanager
def open_stream(key: ApiKey) -> Iterator[None]:
    """Count a stream of this key."""
    open_streams[key.pk] += 1
    try:
        yield
    finally:
        open_streams[key.pk] -= 1
        if not open_streams[key.pk]:
            del open_streams[key.pk]


def reread(key: ApiKey) -> ApiKey | None:
    """Return a key found earlier as it is now, if it still works.

    Keys of open streams are read together, once a second, with what their users may do.
    """
    checked_at, current_key = _checked.get(key.pk, NEVER)
    current_time = time.monotonic()
    if current_time - checked_at <= RECHECK_SECONDS:
        return current_key
    pks = [key.pk, *tuple(open_streams)[: MAX_RECHECKED - 1]]
    rows = ApiKey.objects.filter(pk__in=pks).select_related("user", "user__profile").in_bulk()
    current_keys = {pk: _as_usable(rows.get(pk)) for pk in pks}
    for pk, current_key in current_keys.items():
        _checked[pk] = (current_time, current_key)
        _checked.move_to_end(pk)
    while len(_checked) > MAX_RECHECKED:
        _checked.popitem(last=False)
    return current_keys[key.pk]


def is_surely_usable(key: ApiKey) -> bool:
    """Whether the key was found to work within the last second; reads nothing."""
    checked_at, current_key = _checked.get(key.pk, NEVER)
    return current_key is not None and time.monotonic() - checked_at <= RECHECK_SECONDS


def is_still_usable(key: ApiKey) -> bool:
    """Whether a key found earlier still works."""
    return reread(key) is not None


@contextmanager
def using(key: ApiKey | None) -> Iterator[None]:
    """Start the runs of this block, in this task or thread, with this key."""
    token = _current.set(key)
    try:
        yield
    finally:
        _current.reset(token)


def current() -> ApiKey | None:
    """Return the key that starts runs here, if a program does."""
    return _current.get()


def service_accounts() -> QuerySet[User]:
    """Return the accounts of service keys, with which nobody signs in."""
    return User.objects.filter(
        Exists(ApiKey.objects.filter(user=OuterRef("pk"), is_service=True))
    )


def is_service_account(user: User) -> bool:
    return ApiKey.objects.filter(user=user.pk, is_service=True).exists()


def visible_runs(key: ApiKey) -> QuerySet[Run]:
    """Return the runs that the key may read: without `read_all`, the user's own and shared."""
    if ApiKey.Scope.READ_ALL in key.scopes:
        return Run.objects.for_user(key.user)
    return Run.objects.own_or_shared(key.user)
