"""Incoming webhooks: who sent one, whether it is new, and the run that it starts."""

import hashlib
import hmac
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from standardwebhooks import Webhook, WebhookVerificationError

from agents.access import audit
from agents.db.periodic import periodic
from agents.db.sanitize import sanitize_value
from agents.db.sentences import translate
from agents.engine.errors import AgentError, QuotaExceeded
from agents.engine.text import shorten
from agents.models import Run, Trigger, TriggerCall
from agents.models.secret import UnreadableSecret

from . import automatic
from .start import WorkflowNotStarted

MAX_BODY_BYTES = 256 * 1024
MAX_TROUBLE_CHARS = 500
REQUESTS_PER_MINUTE = 60
GITHUB_PREFIX = "sha256="
BEARER_PREFIX = "bearer "
# A signed body that is sent again after this starts another run.
CALLS_KEPT = timedelta(days=30)
ADD_PERMISSION = "agents.add_trigger"


class NotVerified(Exception):
    """Raised for a request that the trigger's secret doesn't prove."""


class TriggerStopped(Exception):
    """Raised when a trigger can't start anything; the message says why."""

    def __init__(self, reason: str, *, is_limit: bool = False) -> None:
        super().__init__(reason)
        self.is_limit = is_limit


def verify(trigger: Trigger, headers: Mapping[str, str], body: bytes) -> str:
    """Return what tells this call from others; raise NotVerified."""
    try:
        secrets = trigger.secrets_in_use()
    except UnreadableSecret as error:
        raise NotVerified from error
    for secret in secrets:
        if call := _VERIFIERS[trigger.verification](secret, headers, body):
            return hashlib.sha256(call.encode()).hexdigest()
    raise NotVerified


def _verify_standard(secret: str, headers: Mapping[str, str], body: bytes) -> str:
    """Check the signature over the id, a recent time and the body."""
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    given = {name: headers.get(name, "") for name in names}
    try:
        Webhook(secret).verify(body, given, json_parse=False)
    except (WebhookVerificationError, ValueError):  # such as a signature that isn't base64
        return ""
    return given["webhook-id"]


def _verify_github(secret: str, headers: Mapping[str, str], body: bytes) -> str:
    """Check the signature, which is over the body alone: so that tells a call from others."""
    given = headers.get("X-Hub-Signature-256", "")
    expected = GITHUB_PREFIX + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    is_same = hmac.compare_digest(given.encode(), expected.encode())
    return expected if is_same else ""


def _verify_bearer(secret: str, headers: Mapping[str, str], body: bytes) -> str:
    """Check the secret. A call without an id is a new one."""
    given = headers.get("Authorization", "")
    token = given[len(BEARER_PREFIX) :].strip()
    is_bearer = given[: len(BEARER_PREFIX)].lower() == BEARER_PREFIX
    if not is_bearer or not hmac.compare_digest(token.encode(), secret.encode()):
        return ""
    given_id = headers.get("webhook-id", "") or headers.get("Idempotency-Key", "")
    return given_id or f"{timezone.now().isoformat()} {hashlib.sha256(body).hexdigest()}"


_VERIFIERS = {
    Trigger.Verification.STANDARD.value: _verify_standard,
    Trigger.Verification.GITHUB.value: _verify_github,
    Trigger.Verification.BEARER.value: _verify_bearer,
}


def read_payload(body: bytes) -> Any:
    """Return the JSON of a call; raise ValueError."""
    try:
        payload = json.loads(body, parse_constant=_reject_constant) if body.strip() else {}
        return sanitize_value(payload)
    except RecursionError as error:
        raise ValueError from error


def _reject_constant(name: str) -> None:
    raise ValueError(name)


def fire(trigger: Trigger, digest: str, payload: Any) -> tuple[Run | None, bool]:
    """Return the run that this call starts, and whether it is new; raise TriggerStopped.

    The same call again gets the run that it had started.
    """
    if earlier := TriggerCall.objects.filter(trigger=trigger, digest=digest).first():
        return earlier.run, False
    try:
        with transaction.atomic():
            call = TriggerCall.objects.create(trigger=trigger, digest=digest)
            run = _prepare(trigger, payload)
            TriggerCall.objects.filter(pk=call.pk).update(run=run)
            values = {"last_run_at": timezone.now(), "trouble": ""}
            Trigger.objects.filter(pk=trigger.pk).update(**values)
            audit.record(None, audit.TRIGGER_FIRED, trigger, name=trigger.name, run=run.pk)
    except IntegrityError:  # sent twice at the same time
        earlier = TriggerCall.objects.filter(trigger=trigger, digest=digest).first()
        if earlier is None:
            raise
        return earlier.run, False
    except TriggerStopped as reason:
        trouble = shorten(str(reason), MAX_TROUBLE_CHARS)
        Trigger.objects.filter(pk=trigger.pk).update(trouble=trouble)
        raise
    return run, True


def _prepare(trigger: Trigger, payload: Any) -> Run:
    if not trigger.enabled:
        raise TriggerStopped(_("This trigger is disabled."))
    if not trigger.user.has_perm(ADD_PERMISSION):
        names = {"name": trigger.user.get_username()}
        raise TriggerStopped(_("%(name)s can't have triggers any more.") % names)
    topic = automatic.new_trigger_topic(trigger)
    try:
        return automatic.prepare(trigger, topic, payload=payload)
    except QuotaExceeded as error:
        raise TriggerStopped(translate(str(error)), is_limit=True) from error
    except (WorkflowNotStarted, AgentError) as error:
        raise TriggerStopped(translate(str(error))) from error


@periodic("old trigger calls", every=3_600, once=True)
def delete_old() -> None:
    TriggerCall.objects.filter(at__lt=timezone.now() - CALLS_KEPT).delete()
