"""What users granted to apps: their keys, and the refresh tokens that renew them.

A key is the access token. It has one row for as long as the grant lives: refreshing changes its
secret, so limits, last use and runs stay with it.
"""

from datetime import datetime, timedelta
from hmac import compare_digest

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.utils import timezone

from agents.access import api_keys, audit
from agents.db.periodic import periodic
from agents.models import ApiKey, AuthorizationCode, DeviceCode, OAuthApp, OAuthGrant

from .apps import CLI_CLIENT_ID

ACCESS_SECONDS = 3_600
# A refresh token that isn't used for this long expires.
REFRESH_FOR = timedelta(days=30)
REFRESH_PREFIX = "ashr_"
FAMILY_CHARS = 20
# How long used codes, ended keys and apps that nobody connected are remembered.
CODES_FOR = timedelta(days=1)
KEYS_FOR = timedelta(days=90)
UNUSED_APPS_FOR = timedelta(days=1)
CHECK_SECONDS = 3_600


class TokenReused(Exception):
    """Raised if another process used this refresh token a moment before."""


def usable_scopes(user: User, scopes: list[str]) -> list[str]:
    """Return those of the scopes for which a user has the permissions."""
    return [scope for scope in scopes if api_keys.may_have(user, scope)]


def active_keys(user: User) -> QuerySet[ApiKey]:
    """Return the keys of a user's apps that work or can be refreshed."""
    return _alive(ApiKey.objects.filter(user=user)).select_related("app")


def _alive(keys: QuerySet[ApiKey]) -> QuerySet[ApiKey]:
    current_time = timezone.now()
    lives = Q(expires_at__gt=current_time) | Q(grant__expires_at__gt=current_time)
    return keys.filter(lives, app__isnull=False, revoked_at=None)


def is_granted(user: User, app: OAuthApp, scopes: list[str]) -> bool:
    """Whether a user has granted all this to an app, and still does."""
    keys = active_keys(user).filter(app=app).select_related("grant")
    granted = (key.grant.scopes if hasattr(key, "grant") else key.scopes for key in keys)
    return any({*scopes} <= {*some} for some in granted)


def create(
    user: User, app: OAuthApp, scopes: list[str], access_token: str, *, is_refreshable: bool
) -> tuple[ApiKey, str]:
    """Save a new key for an app; return it and the refresh token, if there is to be one."""
    key = ApiKey.objects.create(
        user=user,
        app=app,
        name=app.name[:80],
        scopes=sorted(scopes),
        expires_at=timezone.now() + timedelta(seconds=ACCESS_SECONDS),
        **api_keys.saved_columns(access_token),
    )
    if not is_refreshable:
        return key, ""
    family = api_keys.new_token(REFRESH_PREFIX, FAMILY_CHARS)
    secret = api_keys.new_token("")
    OAuthGrant.objects.create(
        key=key,
        family_digest=api_keys.digest_of(family),
        secret_digest=api_keys.digest_of(secret),
        scopes=sorted(scopes),
        expires_at=timezone.now() + REFRESH_FOR,
    )
    return key, f"{family}.{secret}"


def find_grant(refresh_token: str) -> OAuthGrant | None:
    """Return the grant of a refresh token; an old one ends the grant instead."""
    family, _dot, secret = refresh_token.partition(".")
    grants = OAuthGrant.objects.select_related("key", "key__user", "key__app")
    grant = grants.filter(family_digest=api_keys.digest_of(family)).first()
    if grant is None:
        return None
    if not compare_digest(grant.secret_digest, api_keys.digest_of(secret)):
        end_stolen(grant.key)
        return None
    key = grant.key
    is_usable = key.revoked_at is None and key.user.is_active
    return grant if is_usable and grant.expires_at > timezone.now() else None


def refresh(grant: OAuthGrant, access_token: str, scopes: list[str], family: str) -> str:
    """Renew a key; return the next refresh token. Raises TokenReused."""
    current_time = timezone.now()
    secret = api_keys.new_token("")
    renewed = OAuthGrant.objects.filter(pk=grant.pk, secret_digest=grant.secret_digest).update(
        secret_digest=api_keys.digest_of(secret), expires_at=current_time + REFRESH_FOR
    )
    if not renewed:
        end_stolen(grant.key)
        raise TokenReused
    ApiKey.objects.filter(pk=grant.key_id, revoked_at=None).update(
        scopes=sorted(scopes),
        expires_at=current_time + timedelta(seconds=ACCESS_SECONDS),
        **api_keys.saved_columns(access_token),
    )
    return f"{family}.{secret}"


def end_stolen(key: ApiKey) -> None:
    """End a grant of which somebody used an old token or code."""
    if revoke(ApiKey.objects.filter(pk=key.pk)):
        audit.record(key.user, audit.APP_TOKEN_REUSED, key.app, name=key.name)


def revoke(keys: QuerySet[ApiKey]) -> int:
    """End grants at once; return how many there were."""
    pks = list(keys.filter(app__isnull=False, revoked_at=None).values_list("pk", flat=True))
    OAuthGrant.objects.filter(key__in=pks).delete()
    return api_keys.revoke(ApiKey.objects.filter(pk__in=pks))


def disconnect(user: User, app: OAuthApp) -> bool:
    """End all that a user granted to an app; return whether there was anything."""
    AuthorizationCode.objects.filter(user=user, app=app, used_at=None).delete()
    DeviceCode.objects.filter(user=user, app=app).delete()
    return bool(revoke(ApiKey.objects.filter(user=user, app=app)))


@periodic("apps", every=CHECK_SECONDS, delay=60, once=True)
def prune() -> None:
    """Delete what has ended: codes, grants, keys, and apps that nobody connected."""
    current_time = timezone.now()
    AuthorizationCode.objects.filter(expires_at__lt=current_time - CODES_FOR).delete()
    DeviceCode.objects.filter(expires_at__lt=current_time).delete()
    OAuthGrant.objects.filter(expires_at__lt=current_time).delete()
    _delete_ended_keys(before=current_time - KEYS_FOR)
    unused = OAuthApp.objects.filter(
        api_keys=None,
        codes=None,
        device_codes=None,
        blocked_at=None,
        created_at__lt=current_time - UNUSED_APPS_FOR,
    )
    unused.exclude(client_id=CLI_CLIENT_ID).delete()


def _delete_ended_keys(before: datetime) -> None:
    ended = Q(revoked_at__lt=before) | Q(expires_at__lt=before, grant=None)
    ApiKey.objects.filter(ended, app__isnull=False).delete()
