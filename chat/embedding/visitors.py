"""Who asks in an embedded chat: an anonymous visitor, or a user whom the site has signed in.

A frame proves it with every connection: by a random token that it made itself, or by a JSON
Web Token that the site signed with the embedded chat's secret. Neither is ever in a URL or a
cookie.
"""

import hashlib
import re
import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import OctKey

from agents.access.audit import request_context
from agents.accounts.models import Profile
from agents.accounts.users import profiles
from agents.db.compiled_queries import compiled_query
from agents.models import Embed, EmbedVisitor
from agents.models.secret import UnreadableSecret
from agents.runs import close_codes
from agents.web import request_rate
from chat.errors import MessageRejected

ALGORITHMS = ["HS256"]
MAX_MESSAGE_CHARS = 4_000
ANONYMOUS_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
MAX_TOKEN_CHARS = 4_000
MAX_SUBJECT_CHARS = 255
MAX_LIFETIME = timedelta(hours=24)
CLOCK_SKEW = timedelta(minutes=1)
# Visitors that begin per minute and process: per address, and of one embedded chat.
MAX_NEW_PER_ADDRESS = 10
MAX_NEW_PER_EMBED = 300
USERNAME_PREFIX = "visitor-"
LAST_USE_PRECISION = timedelta(minutes=10)


class VisitorRefused(Exception):
    """Raised when a frame can't be used; `code` tells its page why."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What a frame has proved: a subject of the site's tokens, or a random token's digest."""

    subject: str = ""
    digest: str = ""
    name: str = ""
    email: str = ""


def find_embed(public_id: str) -> Embed | None:
    """Return the embedded chat with its agent, if it can be used."""
    embed = next(iter(_embeds_by_public_id(public_id)), None)
    return embed if embed is not None and embed.enabled and embed.agent.enabled else None


def identify(public_id: str, credential: str) -> tuple[Embed, Identity]:
    """Return the embedded chat and who uses it; raise VisitorRefused."""
    embed = find_embed(public_id)
    if embed is None:
        raise VisitorRefused(close_codes.FORBIDDEN)
    if ANONYMOUS_TOKEN.fullmatch(credential) and embed.allows_anonymous:
        text = f"{embed.public_id}.{credential}"
        return embed, Identity(digest=hashlib.sha256(text.encode()).hexdigest())
    if embed.allows_signed:
        return embed, _verify(embed, credential)
    raise VisitorRefused(close_codes.UNSIGNED)


def _verify(embed: Embed, token: str) -> Identity:
    """Return whom the site's token names, if its signature, time and audience are right."""
    if len(token) > MAX_TOKEN_CHARS:
        raise VisitorRefused(close_codes.UNSIGNED)
    try:
        key = OctKey.import_key(embed.secret.reveal())
        claims = jwt.decode(token, key, algorithms=ALGORITHMS).claims
    except (JoseError, UnreadableSecret, ValueError, TypeError, RecursionError) as error:
        raise VisitorRefused(close_codes.UNSIGNED) from error
    current_time = timezone.now().timestamp()
    expires_at = _number(claims.get("exp"))
    starts_at = _number(claims.get("nbf", current_time))
    audience = claims.get("aud", embed.public_id)
    subject = _line(claims.get("sub"), MAX_SUBJECT_CHARS + 1)
    is_valid = (
        expires_at is not None
        and starts_at is not None
        and current_time < expires_at
        and expires_at <= current_time + (MAX_LIFETIME + CLOCK_SKEW).total_seconds()
        and starts_at <= current_time + CLOCK_SKEW.total_seconds()
        and embed.public_id in (audience if isinstance(audience, list) else [audience])
        and 0 < len(subject) <= MAX_SUBJECT_CHARS
        and subject == claims.get("sub")  # two users of the site must not become one visitor
    )
    if not is_valid:
        raise VisitorRefused(close_codes.UNSIGNED)
    name_field = Profile._meta.get_field("display_name")
    email_field = EmbedVisitor._meta.get_field("email")
    return Identity(
        subject=subject,
        name=_line(claims.get("name"), name_field.max_length or 0),
        email=_line(claims.get("email"), email_field.max_length or 0),
    )


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number else None


def _line(value: Any, max_chars: int) -> str:
    """Return a text of a token on one line, without invisible characters."""
    return profiles.clean_name(value)[:max_chars] if isinstance(value, str) else ""


def find(embed: Embed, identity: Identity) -> EmbedVisitor | None:
    """Return the visitor, if they have asked something before."""
    if identity.subject:
        return next(iter(_visitors_by_subject(embed.pk, identity.subject)), None)
    return next(iter(_visitors_by_digest(embed.pk, identity.digest)), None)


def find_or_create(embed: Embed, identity: Identity, address: str) -> EmbedVisitor:
    """Return the visitor who asks, with the name that the site says; raise MessageRejected."""
    visitor = find(embed, identity)
    if visitor is None:
        is_flood = request_rate.is_exceeded("visitors", embed.pk, MAX_NEW_PER_EMBED)
        if not identity.subject:  # a site's users may share an address
            key = f"{embed.pk} {address}"
            is_flood |= request_rate.is_exceeded("visitor", key, MAX_NEW_PER_ADDRESS)
        if is_flood:
            raise MessageRejected(_("Too many new visitors. Wait a moment and try again."))
        try:
            visitor = _create(embed, identity)
        except IntegrityError:  # asked in two tabs at once
            visitor = find(embed, identity)
            if visitor is None:
                raise
    elif visitor.last_used_at < timezone.now() - LAST_USE_PRECISION:
        visitor.last_used_at = timezone.now()
        visitor.save(update_fields=["last_used_at"])
    if identity.email != visitor.email:
        visitor.email = identity.email
        visitor.save(update_fields=["email"])
    if identity.name != profiles.of_user(visitor.user).display_name:
        profiles.save_setting(visitor.user, display_name=identity.name)
    return visitor


def _create(embed: Embed, identity: Identity) -> EmbedVisitor:
    """Create the account: without a password, a role or an entry in the audit log."""
    with transaction.atomic(), request_context.as_system():
        user = User(username=f"{USERNAME_PREFIX}{secrets.token_hex(6)}")
        user.set_unusable_password()
        user.save()
        user.groups.add(embed.group_id)
        return EmbedVisitor.objects.create(
            embed=embed, user=user, subject=identity.subject, digest=identity.digest
        )


@compiled_query
def _embeds_by_public_id(public_id: str) -> QuerySet[Embed]:
    return Embed.objects.filter(public_id=public_id).select_related("agent")


@compiled_query
def _visitors_by_subject(embed: int, subject: str) -> QuerySet[EmbedVisitor]:
    visitors = EmbedVisitor.objects.filter(embed=embed, subject=subject)
    return visitors.select_related("user", "user__profile")


@compiled_query
def _visitors_by_digest(embed: int, digest: str) -> QuerySet[EmbedVisitor]:
    visitors = EmbedVisitor.objects.filter(embed=embed, digest=digest)
    return visitors.select_related("user", "user__profile")
