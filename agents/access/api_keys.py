"""API keys: making, finding and checking them."""

import hashlib
import secrets
import string
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone

from agents.db.compiled_queries import compiled_query
from agents.models import ApiKey, Run

TOKEN_PREFIX = "ash_"
TOKEN_CHARS = 40  # of 62: 238 bits
SHOWN_CHARS = 10
BEARER = "bearer "
# How long an open stream may trust that its key isn't revoked.
RECHECK_SECONDS = 1.0
MAX_RECHECKED = 1_000
USED_EVERY = timedelta(minutes=1)

_current: ContextVar[ApiKey | None] = ContextVar("api_key", default=None)


def create(user: User, name: str, scopes: Iterable[str], **columns: Any) -> tuple[ApiKey, str]:
    """Save a new key; return it and its secret, which is known only now."""
    alphabet = string.ascii_letters + string.digits
    token = TOKEN_PREFIX + "".join(secrets.choice(alphabet) for _ in range(TOKEN_CHARS))
    key = ApiKey.objects.create(
        user=user,
        name=name,
        scopes=sorted(set(scopes)),
        prefix=token[:SHOWN_CHARS],
        digest=digest_of(token),
        **columns,
    )
    return key, token


def digest_of(token: str) -> str:
    """Return what is saved of a token. It is random, so it needs no slow hash."""
    return hashlib.sha256(token.encode()).hexdigest()


def find(authorization: str) -> ApiKey | None:
    """Return the usable key that an Authorization header proves, with its user."""
    if not authorization.lower().startswith(BEARER):
        return None
    token = authorization[len(BEARER) :].strip()
    return next((key for key in _keys_by_digest(digest_of(token)) if key.is_usable), None)


@compiled_query
def _keys_by_digest(digest: str) -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(digest=digest).select_related("user", "user__profile")


def note_use(key: ApiKey) -> None:
    """Save that the key was used, at most once a minute."""
    current_time = timezone.now()
    if key.last_used_at is None or current_time - key.last_used_at > USED_EVERY:
        ApiKey.objects.filter(pk=key.pk).update(last_used_at=current_time)
        key.last_used_at = current_time


def revoke(keys: QuerySet[ApiKey], at: datetime | None = None) -> int:
    """Revoke keys at once; open streams end within a second."""
    return keys.filter(revoked_at=None).update(revoked_at=at or timezone.now())


_checked: OrderedDict[int, tuple[float, bool]] = OrderedDict()


def is_still_usable(key: ApiKey) -> bool:
    """Whether a key found earlier still works; asked once a second for all its streams."""
    current_time = time.monotonic()
    checked_at, is_usable = _checked.get(key.pk, (0.0, False))
    if current_time - checked_at > RECHECK_SECONDS:
        is_usable = ApiKey.objects.usable().filter(pk=key.pk).exists()
        _checked[key.pk] = (current_time, is_usable)
        _checked.move_to_end(key.pk)
        if len(_checked) > MAX_RECHECKED:
            _checked.popitem(last=False)
    return is_usable


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


def visible_runs(key: ApiKey) -> QuerySet[Run]:
    """Return the runs that the key may read: without `read_all`, the user's own and shared."""
    if ApiKey.Scope.READ_ALL in key.scopes:
        return Run.objects.for_user(key.user)
    return Run.objects.own_or_shared(key.user)
