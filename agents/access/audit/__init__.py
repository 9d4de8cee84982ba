"""The audit log: who did what, in entries that are never changed."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from math import isfinite
from typing import Any, Protocol

from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.crypto import salted_hmac

from agents.access import masking
from agents.db import errors
from agents.engine.text import shorten
from agents.models import AuditEntry, AuditPerson, Run
from agents.models.audit import ANONYMOUS_TOKEN
from agents.models.types import AnyUser

from . import hash_chain, request_context

SIGNED_IN = "signin.ok"
SIGN_IN_FAILED = "signin.failed"
SIGNED_OUT = "signin.out"
SESSION_ENDED = "signin.ended"
PASSWORD_SET = "password.set"
PASSWORD_LINK = "password.link"
MFA_ADDED = "mfa.added"
MFA_REMOVED = "mfa.removed"
PERSON_ADDED = "person.added"
PERSON_ACTIVATED = "person.activated"
PERSON_DEACTIVATED = "person.deactivated"
PERSON_CHANGED = "person.changed"
PERSON_DELETED = "person.deleted"
PERSON_EXPORTED = "person.exported"
ERASURE_STARTED = "person.erasure"
PERSON_ERASED = "person.erased"
PERSON_INVITED = "person.invited"
INVITATION_SENT = "person.invitation_sent"
INVITATION_REVOKED = "person.invitation_revoked"
INVITATION_RESTORED = "person.invitation_restored"
RIGHTS_CHANGED = "rights.changed"
QUOTA_CHANGED = "rights.quota"
ADDED = "console.added"
CHANGED = "console.changed"
DELETED = "console.deleted"
RESTORED = "console.restored"
DELETED_FOR_GOOD = "console.erased"
SERVER_TESTED = "server.tested"
SERVER_FILES_DELETED = "server.files_deleted"
SERVER_SIGNED_IN = "server.signed_in"
SERVER_SIGNED_OUT = "server.signed_out"
MODEL_TESTED = "model.tested"
MODEL_TEST_ENDED = "model.test_ended"
TOOL_RUN = "tool.run"
TOOL_ACCEPTED = "tool.accepted"
CONFIG_EXPORTED = "configuration.exported"
CONFIG_IMPORTED = "configuration.imported"
WEBHOOK_REPLAYED = "webhook.replayed"
SECRET_ROTATED = "webhook.secret_rotated"
TRIGGER_FIRED = "trigger.fired"
WORKFLOW_SAVED = "workflow.saved"
SCHEDULE_ACCEPTED = "workflow.accepted"
SCHEDULE_DECLINED = "workflow.declined"
API_KEY_CREATED = "key.created"
API_KEY_REVOKED = "key.revoked"
APP_ALLOWED = "app.allowed"
APP_REVOKED = "app.revoked"
APP_REGISTERED = "app.registered"
APP_TOKEN_REUSED = "app.token_reused"
DECIDED = "approval.decided"
TOOL_ALLOWED = "approval.always_allowed"
TOOL_REVOKED = "approval.permission_revoked"
TOOL_AUTO_APPROVED = "approval.automatic"
VIEWED = "run.viewed"
SEARCHED = "run.searched"
EXPORTED = "run.exported"
LIST_EXPORTED = "run.list_exported"
UNMASKED = "run.unmasked"
RERUN = "run.rerun"
SHARED = "run.shared"
SHARE_REVOKED = "share.revoked"
SHARE_OPENED = "share.opened"
MEMBER_ADDED = "session.member_added"
MEMBER_REMOVED = "session.member_removed"
INVITED = "session.invited"
INVITATION_WITHDRAWN = "session.invitation_withdrawn"
PUBLISHED = "session.published"
REPUBLISHED = "session.republished"
UNPUBLISHED = "session.unpublished"
PUBLIC_OPENED = "session.public_opened"
SESSION_EXPORTED = "session.exported"
SESSIONS_IMPORTED = "session.imported"
COLLECTION_SHARED = "collection.shared"
HIT_JUDGED = "review.hit"
EXAMPLE_SAVED = "review.example"
BACKTEST_STARTED = "review.backtest"
EXAMPLES_RUN = "review.examples_run"
SETTING_CHANGED = "console.setting"
LOG_STARTED = "audit.begun"
LOG_TRUNCATED = hash_chain.LOG_TRUNCATED
LOG_EXPORTED = "audit.exported"
LOG_VERIFIED = "audit.verified"
PRUNED = "retention.pruned"

SEARCH_SALT = "searched"
DIGEST_CHARS = 12
REPEAT_WINDOW = timedelta(hours=1)
# The beginning of the API key with which something was done: its name may be personal.
KEY_DETAIL = "api_key"
MAX_TEXT_CHARS = 500
MAX_ITEMS = 50
MAX_DEPTH = 4


class Actor(Protocol):
    """Who did something: a user, an anonymous visitor or the terminal."""

    @property
    def pk(self) -> int | None: ...


class NotRecorded(Exception):
    """Raised when an action can't be recorded and so must not happen."""


def record(actor: Actor | None, action: str, subject: Any, **detail: Any) -> AuditEntry:
    """Record that a user did something; None for no account.

    Call it last in the transaction of the action: other writers wait for it to end.
    """
    with errors.reraise_as(NotRecorded):
        entry = _build_entry(person(actor), action, _subject_name(subject), detail)
        hash_chain.append([entry])
    return entry


def record_all(
    actor: Actor | None, action: str, details: Iterable[tuple[Any, Mapping[str, Any]]]
) -> None:
    """Record that a user did the same to several subjects, in as many statements as for one."""
    with errors.reraise_as(NotRecorded):
        audit_person = person(actor)
        entries = [
            _build_entry(audit_person, action, _subject_name(subject), detail)
            for subject, detail in details
        ]
        hash_chain.append(entries)


def record_hourly(actor: Actor | None, action: str, subject: Any, **detail: Any) -> None:
    """Record an action at most once per hour for the same user and subject."""
    same = AuditEntry.objects.by(_authenticated_user(actor)).filter(
        action=action, subject=_subject_name(subject), at__gte=timezone.now() - REPEAT_WINDOW
    )
    if not same.filter(**{f"detail__{name}": value for name, value in detail.items()}).exists():
        record(actor, action, subject, **detail)


def record_search(actor: Actor | None, kind: str, query: str, door: str) -> None:
    """Record a search of masked text; the query may be personal, so only a digest is saved."""
    digest = salted_hmac(SEARCH_SALT, query, algorithm="sha256").hexdigest()[:DIGEST_CHARS]
    record_hourly(actor, SEARCHED, kind, door=door, digest=digest)


def record_view(actor: AnyUser, run: Run, door: str) -> None:
    """Record that a user viewed another user's run, at most once per hour."""
    record_views(actor, [run], door)


def record_views(actor: AnyUser, runs: Iterable[Run], door: str) -> None:
    """Record several views at once."""
    viewed = {_subject_name(run) for run in runs if not masking.is_own(run, actor)}
    if not viewed:
        return
    recent = AuditEntry.objects.by(_authenticated_user(actor)).filter(
        action=VIEWED,
        subject__in=viewed,
        detail__door=door,
        at__gte=timezone.now() - REPEAT_WINDOW,
    )
    subjects = sorted(viewed - set(recent.values_list("subject", flat=True)))
    if not subjects:
        return
    with errors.reraise_as(NotRecorded):
        viewer = person(actor)
        hash_chain.append(
            [_build_entry(viewer, VIEWED, subject, {"door": door}) for subject in subjects]
        )


def truncate(*, before: datetime) -> int:
    """Remove entries from before this time; return how many.

    An entry that stays says so, with the seal from which the chain continues.
    """
    old_entries = AuditEntry.objects.filter(at__lt=before).order_by("number")
    first_kept = AuditEntry.objects.filter(at__gte=before).order_by("number").first()
    last = (
        old_entries.filter(number__lt=first_kept.number) if first_kept else old_entries
    ).last()
    if last is not None:
        count = AuditEntry.objects.filter(number__lte=last.number).count()
        facts = {"through": last.number, "seal": last.seal, "entries": count}
        record(None, LOG_TRUNCATED, "audit", before=before.isoformat(), **facts)
    return sum(iter(hash_chain.truncate_page, 0))


def person(user: Actor | None) -> AuditPerson:
    """Return the log's identity for this account, or the anonymous one."""
    account = _authenticated_user(user)
    if account is None:
        return AuditPerson.objects.get_or_create(token=ANONYMOUS_TOKEN)[0]
    name = account.get_username()
    audit_person, _is_new = AuditPerson.objects.get_or_create({"name": name}, user=account)
    if audit_person.name != name and audit_person.leaves_at is None:
        AuditPerson.objects.filter(pk=audit_person.pk).update(name=name)
        audit_person.name = name
    return audit_person


def to_json_value(value: Any, depth: int = 0) -> Any:
    """Return the value as every database returns it, with limited size."""
    if isinstance(value, AuditPerson):
        return value.subject
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        # Whole floats come back as integers, and NaN and infinity not at all.
        return int(value) if value.is_integer() else value if isfinite(value) else str(value)
    if isinstance(value, Mapping) and depth < MAX_DEPTH:
        items = list(value.items())[:MAX_ITEMS]
        return {_shorten(str(name)): to_json_value(item, depth + 1) for name, item in items}
    if isinstance(value, list | tuple | set) and depth < MAX_DEPTH:
        return [to_json_value(item, depth + 1) for item in list(value)[:MAX_ITEMS]]
    return _shorten(str(value))


def _shorten(text: str) -> str:
    text = text.replace("\0", "\ufffd").encode(errors="replace").decode()
    return shorten(text, MAX_TEXT_CHARS)


def _authenticated_user(user: Actor | None) -> User | None:
    return user if isinstance(user, User) and user.pk else None


def _build_entry(
    audit_person: AuditPerson, action: str, subject: str, detail: Mapping[str, Any]
) -> AuditEntry:
    client = request_context.client_info()
    if key := request_context.api_key():
        detail = {**detail, KEY_DETAIL: key.beginning}
    return AuditEntry(
        person=audit_person,
        action=action,
        subject=subject[:120],
        detail=to_json_value(detail),
        place=audit_person.encrypt(json.dumps(client, ensure_ascii=False)) if client else "",
    )


def _subject_name(subject: Any) -> str:
    """Return a row's kind and id, or a user's token."""
    if isinstance(subject, str):
        return subject
    if isinstance(subject, AuditPerson):
        return subject.subject
    return f"{subject._meta.model_name}:{subject.pk}"
