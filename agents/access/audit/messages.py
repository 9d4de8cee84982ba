"""Audit entries as sentences."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.core.exceptions import FieldDoesNotExist
from django.db.models import Model
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext_lazy

from agents.access import audit
from agents.db.fast_writes import concrete_field
from agents.db.installation.branding import LOGOS
from agents.db.installation.configured import SETTINGS
from agents.models import ApiKey, AuditEntry, AuditPerson
from agents.models.audit import ANONYMOUS_TOKEN
from agents.models.types import LazyText

from .hash_chain import ChainVerification, Flaw

PERSON_PREFIX = "person:"
KEY_BEGINNING = re.compile(r"\bash\w{3,10}…")

SENTENCES = {
    audit.SIGNED_IN: gettext_lazy("%(who)s signed in."),
    audit.SIGN_IN_FAILED: gettext_lazy("Sign-in as %(what)s failed."),
    audit.SIGNED_OUT: gettext_lazy("%(who)s signed out."),
    audit.SESSION_ENDED: gettext_lazy("%(who)s revoked sessions of %(what)s."),
    audit.PASSWORD_SET: gettext_lazy("%(who)s changed the password of %(what)s."),
    audit.PASSWORD_LINK: gettext_lazy("%(who)s created a password link for %(what)s."),
    audit.MFA_ADDED: gettext_lazy("%(who)s added a sign-in method for %(what)s."),
    audit.MFA_REMOVED: gettext_lazy("%(who)s removed a sign-in method from %(what)s."),
    audit.PERSON_ADDED: gettext_lazy("%(who)s created an account for %(what)s."),
    audit.PERSON_ACTIVATED: gettext_lazy("%(who)s enabled the account of %(what)s."),
    audit.PERSON_DEACTIVATED: gettext_lazy("%(who)s disabled the account of %(what)s."),
    audit.PERSON_CHANGED: gettext_lazy("%(who)s changed the account of %(what)s."),
    audit.PERSON_DELETED: gettext_lazy("%(who)s deleted the account of %(what)s."),
    audit.PERSON_EXPORTED: gettext_lazy("%(who)s downloaded the data of %(what)s."),
    audit.ERASURE_STARTED: gettext_lazy("%(who)s started erasing all data of %(what)s."),
    audit.PERSON_ERASED: gettext_lazy("All data of %(what)s was erased."),
    audit.PERSON_INVITED: gettext_lazy("%(who)s created %(what)s."),
    audit.INVITATION_SENT: gettext_lazy("%(who)s sent %(what)s again."),
    audit.INVITATION_REVOKED: gettext_lazy("%(who)s revoked %(what)s."),
    audit.INVITATION_RESTORED: gettext_lazy("%(who)s restored %(what)s."),
    audit.RIGHTS_CHANGED: gettext_lazy("%(who)s changed the permissions of %(what)s."),
    audit.QUOTA_CHANGED: gettext_lazy("%(who)s changed the usage limits of %(what)s."),
    audit.ADDED: gettext_lazy("%(who)s added %(what)s."),
    audit.CHANGED: gettext_lazy("%(who)s changed %(what)s."),
    audit.DELETED: gettext_lazy("%(who)s deleted %(what)s."),
    audit.RESTORED: gettext_lazy("%(who)s restored %(what)s."),
    audit.DELETED_FOR_GOOD: gettext_lazy("%(who)s deleted %(what)s permanently."),
    audit.SERVER_TESTED: gettext_lazy("%(who)s tested the connection to %(what)s."),
    audit.SERVER_FILES_DELETED: gettext_lazy("%(who)s deleted the files of %(what)s."),
    audit.SERVER_SIGNED_IN: gettext_lazy("%(who)s signed in to %(what)s."),
    audit.SERVER_SIGNED_OUT: gettext_lazy("%(who)s signed out of %(what)s."),
    audit.MODEL_TESTED: gettext_lazy("%(who)s tested %(what)s."),
    audit.MODEL_TEST_ENDED: gettext_lazy("%(who)s finished testing %(what)s."),
    audit.TOOL_RUN: gettext_lazy("%(who)s ran %(what)s manually."),
    audit.TOOL_ACCEPTED: gettext_lazy("%(who)s accepted the change to %(what)s."),
    audit.CONFIG_EXPORTED: gettext_lazy("%(who)s exported the configuration file."),
    audit.CONFIG_IMPORTED: gettext_lazy("%(who)s imported a configuration file."),
    audit.WORKFLOW_SAVED: gettext_lazy("%(who)s saved a new version of %(what)s."),
    audit.SCHEDULE_ACCEPTED: gettext_lazy("%(who)s accepted %(what)s."),
    audit.SCHEDULE_DECLINED: gettext_lazy("%(who)s rejected %(what)s."),
    audit.API_KEY_CREATED: gettext_lazy("%(who)s created %(what)s."),
    audit.API_KEY_REVOKED: gettext_lazy("%(who)s revoked %(what)s."),
    audit.APP_ALLOWED: gettext_lazy("%(who)s connected %(what)s."),
    audit.APP_REVOKED: gettext_lazy("%(who)s disconnected %(what)s."),
    audit.APP_REGISTERED: gettext_lazy("%(what)s registered itself."),
    audit.APP_TOKEN_REUSED: gettext_lazy(
        "An old token of %(what)s was used again, so its access for %(who)s was revoked."
    ),
    audit.TOOL_ALLOWED: gettext_lazy("%(who)s chose to always allow a tool in %(what)s."),
    audit.TOOL_REVOKED: gettext_lazy("%(who)s revoked %(what)s."),
    audit.TOOL_AUTO_APPROVED: gettext_lazy(
        "A tool that %(who)s always allows was called in %(what)s."
    ),
    audit.DECIDED: gettext_lazy("%(who)s answered an approval request in %(what)s."),
    audit.VIEWED: gettext_lazy("%(who)s viewed %(what)s."),
    audit.SEARCHED: gettext_lazy("%(who)s searched masked text (list: %(what)s)."),
    audit.EXPORTED: gettext_lazy("%(who)s exported %(what)s."),
    audit.LIST_EXPORTED: gettext_lazy("%(who)s exported runs from the trace list."),
    audit.UNMASKED: gettext_lazy("%(who)s unmasked personal data in %(what)s."),
    audit.RERUN: gettext_lazy("%(who)s ran %(what)s again."),
    audit.SHARED: gettext_lazy("%(who)s created a share link to %(what)s."),
    audit.SHARE_REVOKED: gettext_lazy("%(who)s revoked a share link to %(what)s."),
    audit.SHARE_OPENED: gettext_lazy("%(who)s opened a share link to %(what)s."),
    audit.MEMBER_ADDED: gettext_lazy("%(who)s added a member to %(what)s."),
    audit.MEMBER_REMOVED: gettext_lazy("%(who)s removed a member from %(what)s."),
    audit.INVITED: gettext_lazy("%(who)s created an invite link to %(what)s."),
    audit.INVITATION_WITHDRAWN: gettext_lazy("%(who)s revoked an invite link to %(what)s."),
    audit.PUBLISHED: gettext_lazy("%(who)s created a public link to %(what)s."),
    audit.REPUBLISHED: gettext_lazy("%(who)s updated a public link to %(what)s."),
    audit.UNPUBLISHED: gettext_lazy("%(who)s revoked a public link to %(what)s."),
    audit.PUBLIC_OPENED: gettext_lazy("%(who)s opened a public link to %(what)s."),
    audit.SESSION_EXPORTED: gettext_lazy("%(who)s exported %(what)s."),
    audit.SESSIONS_IMPORTED: gettext_lazy("%(who)s imported chats."),
    audit.COLLECTION_SHARED: gettext_lazy("%(who)s changed who can read %(what)s."),
    audit.SETTING_CHANGED: gettext_lazy("%(who)s changed the %(what)s."),
    audit.LOG_STARTED: gettext_lazy(
        "Signing of the audit log started, including all earlier entries."
    ),
    audit.LOG_TRUNCATED: gettext_lazy("Old audit log entries were deleted."),
    audit.LOG_EXPORTED: gettext_lazy("%(who)s exported the audit log."),
    audit.LOG_VERIFIED: gettext_lazy("%(who)s verified the audit log."),
    audit.PRUNED: gettext_lazy("Data past its retention period was deleted."),
    "review.flag": gettext_lazy("%(who)s flagged %(what)s."),
    "review.assign": gettext_lazy("%(who)s changed the reviewer of %(what)s."),
    "review.verdict": gettext_lazy("%(who)s reviewed %(what)s."),
    "review.score": gettext_lazy("%(who)s scored %(what)s."),
    "review.correction": gettext_lazy("%(who)s corrected the answer of %(what)s."),
    audit.EXAMPLE_SAVED: gettext_lazy("%(who)s saved %(what)s as an example."),
    audit.BACKTEST_STARTED: gettext_lazy("%(who)s started a backtest of %(what)s."),
    audit.EXAMPLES_RUN: gettext_lazy("%(who)s ran an example set with %(what)s."),
    "problem.status": gettext_lazy("%(who)s changed the status of %(what)s."),
    "problem.assigned": gettext_lazy("%(who)s changed the assignee of %(what)s."),
    "problem.merged": gettext_lazy("%(who)s merged another problem into %(what)s."),
    "suggestion.applied": gettext_lazy("%(who)s applied a suggestion to %(what)s."),
    "suggestion.undone": gettext_lazy("%(who)s undid a suggestion for %(what)s."),
    "suggestion.dismissed": gettext_lazy("%(who)s dismissed a suggestion for %(what)s."),
    "suggestion.reopened": gettext_lazy("%(who)s reopened a suggestion for %(what)s."),
    audit.WEBHOOK_REPLAYED: gettext_lazy("%(who)s sent a delivery of %(what)s again."),
    audit.SECRET_ROTATED: gettext_lazy("%(who)s replaced the signing secret of %(what)s."),
    audit.TRIGGER_FIRED: gettext_lazy("%(what)s started a run."),
    "alert.tested": gettext_lazy("%(who)s tested %(what)s."),
    "alert.summary_sent": gettext_lazy("%(who)s sent %(what)s."),
    audit.HIT_JUDGED: gettext_lazy("%(who)s reviewed a guardrail hit in %(what)s."),
}
CATEGORY_LABELS = {
    "signin": gettext_lazy("Sign-in"),
    "password": gettext_lazy("Passwords"),
    "mfa": gettext_lazy("Two-factor authentication and passkeys"),
    "person": gettext_lazy("Accounts"),
    "rights": gettext_lazy("Permissions"),
    "console": gettext_lazy("Console changes"),
    "server": gettext_lazy("MCP servers"),
    "model": gettext_lazy("Models"),
    "tool": gettext_lazy("Tools"),
    "configuration": gettext_lazy("Configuration files"),
    "workflow": gettext_lazy("Workflows"),
    "trigger": gettext_lazy("Triggers"),
    "webhook": gettext_lazy("Webhooks"),
    "key": gettext_lazy("API keys"),
    "app": gettext_lazy("Connected apps"),
    "approval": gettext_lazy("Approvals"),
    "run": gettext_lazy("Run access"),
    "review": gettext_lazy("Reviews"),
    "problem": gettext_lazy("Problems"),
    "suggestion": pgettext_lazy("improvements", "Suggestions"),
    "alert": gettext_lazy("Alerts"),
    "share": gettext_lazy("Share links"),
    "session": gettext_lazy("Shared chats"),
    "collection": gettext_lazy("Shared documents"),
    "audit": gettext_lazy("Audit log"),
    "retention": gettext_lazy("Retention"),
}
FLAW_SENTENCES = {
    Flaw.CHANGED: gettext_lazy("Entry %(number)d was changed after it was written."),
    Flaw.REMOVED: gettext_lazy("Entry %(number)d was removed."),
    Flaw.INSERTED: gettext_lazy(
        "Entry %(number)d was inserted or overwritten without the signing key."
    ),
    Flaw.TAIL_CUT: gettext_lazy(
        "The latest entries were removed, starting with entry %(number)d."
    ),
    Flaw.REWRITTEN: gettext_lazy("Entry %(number)d was replaced with a different one."),
    Flaw.KEY_GONE: gettext_lazy(
        "Entry %(number)d was signed with a key that isn't in ASHIATO_ENCRYPTION_KEYS."
    ),
}

# Labels of details whose key isn't the word people use.
DETAIL_LABELS = {
    "added": gettext_lazy("added"),
    "address": gettext_lazy("URL"),
    "agentstep_count": gettext_lazy("steps"),
    "apart": gettext_lazy("individual permissions"),
    audit.KEY_DETAIL: gettext_lazy("API key"),
    "is_shared": gettext_lazy("used by everyone"),
    "approval_count": gettext_lazy("approvals"),
    "approved": gettext_lazy("approved"),
    "arguments": gettext_lazy("arguments"),
    "before": gettext_lazy("before"),
    "by": gettext_lazy("via"),
    "changed": pgettext_lazy("audit log", "edited"),
    "characters": gettext_lazy("characters entered"),
    "collection": gettext_lazy("collection"),
    "count": gettext_lazy("number"),
    "criteria": gettext_lazy("criteria"),
    "criterion": gettext_lazy("criterion"),
    "deleted_together": gettext_lazy("items deleted together"),
    "digest": gettext_lazy("digest"),
    "chunk_count": gettext_lazy("passages"),
    "checked": gettext_lazy("entries checked"),
    "door": gettext_lazy("screen"),
    "example": gettext_lazy("example"),
    "expires_at": gettext_lazy("expires"),
    "experiment": gettext_lazy("experiment"),
    "filter": gettext_lazy("filter"),
    "form": gettext_lazy("file format"),
    "grant": gettext_lazy("permission"),
    "groups": gettext_lazy("groups"),
    "holds": gettext_lazy("intact"),
    "hours": gettext_lazy("valid for (hours)"),
    "is_right": gettext_lazy("correct"),
    "kinds": gettext_lazy("types"),
    "left": gettext_lazy("still in configuration"),
    "level": gettext_lazy("shared content"),
    "link": gettext_lazy("link ID"),
    "live": gettext_lazy("live tools"),
    "message_count": gettext_lazy("messages"),
    "model": gettext_lazy("model"),
    "outcome": gettext_lazy("outcome"),
    "problem": gettext_lazy("problem"),
    "provider": gettext_lazy("provider"),
    "questions": gettext_lazy("questions"),
    "queue": gettext_lazy("review queue"),
    "reason": gettext_lazy("reason"),
    "refused": gettext_lazy("invalid fields"),
    "reruns": gettext_lazy("reruns"),
    "reviewers": gettext_lazy("reviewers"),
    "right": gettext_lazy("permission"),
    "role": gettext_lazy("role"),
    "removed": gettext_lazy("removed"),
    "replaced": gettext_lazy("text replaced in"),
    "restored": gettext_lazy("restored"),
    "rule": gettext_lazy("pattern"),
    "run": gettext_lazy("run"),
    "run_count": gettext_lazy("number of runs"),
    "runevent_count": gettext_lazy("events"),
    "runs": gettext_lazy("runs"),
    "scope": gettext_lazy("allowed"),
    "scopes": gettext_lazy("scopes"),
    "score": gettext_lazy("score"),
    "state": gettext_lazy("state"),
    "step": gettext_lazy("step"),
    "to": gettext_lazy("assigned to"),
    "tool": gettext_lazy("tool"),
    "verdict": gettext_lazy("verdict"),
    "version": gettext_lazy("version"),
    "way": gettext_lazy("via"),
    "what": gettext_lazy("type"),
    "who": gettext_lazy("user"),
}
METHOD_LABELS = {
    "all": gettext_lazy("all except the password"),
    "code": gettext_lazy("two-factor code"),
    "confirm": gettext_lazy("re-authentication"),
    "erase": gettext_lazy("account deletion"),
    "invitation": gettext_lazy("invitation"),
    "link": gettext_lazy("link from an administrator"),
    "oidc": gettext_lazy("single sign-on"),
    "passkey": gettext_lazy("passkey"),
    "password": gettext_lazy("password"),
    "recovery": gettext_lazy("recovery code"),
    "recovery codes": gettext_lazy("recovery codes"),
    "service": gettext_lazy("service key"),
    "totp": gettext_lazy("authenticator app"),
}
SCREEN_LABELS = {
    "admin": gettext_lazy("admin console"),
    "api": gettext_lazy("API"),
    "backtest": gettext_lazy("backtest"),
    "compare": gettext_lazy("comparison"),
    "export": gettext_lazy("export"),
    "page": gettext_lazy("run page"),
    "queue": gettext_lazy("review queue"),
    "replay": gettext_lazy("replay"),
    "rerun": gettext_lazy("rerun"),
    "socket": gettext_lazy("live updates"),
}
GENERAL_QUEUE_LABEL = {"": gettext_lazy("General")}
VALUE_LABELS = dict.fromkeys(("by", "way", "what"), METHOD_LABELS) | {
    "door": SCREEN_LABELS,
    "queue": GENERAL_QUEUE_LABEL,
}


def person_names(entries: Iterable[AuditEntry]) -> dict[str, str]:
    """Return the names behind the tokens and API keys in these entries, in a query each."""
    facts = [[entry.subject, entry.detail] for entry in entries]
    text = json.dumps(facts, ensure_ascii=False)
    tokens = {following[:32] for following in text.split(PERSON_PREFIX)[1:]}
    names = {row.subject: str(row) for row in AuditPerson.objects.filter(token__in=tokens)}
    if beginnings := set(KEY_BEGINNING.findall(text)):
        keys = ApiKey.objects.filter(prefix__in=[text[:-1] for text in beginnings])
        names |= {key.beginning: str(key) for key in keys}
    return names


def sentence(entry: AuditEntry, people: Mapping[str, str]) -> str:
    """Return what a user did."""
    label = subject_label(entry, people)
    template = SENTENCES.get(entry.action)
    if template is None:
        return f"{actor_name(entry)}: {entry.action} {label}"
    return str(template) % {"who": actor_name(entry), "what": label}


def actor_name(entry: AuditEntry) -> str:
    if entry.person.token != ANONYMOUS_TOKEN:
        return str(entry.person)
    return _("An anonymous user") if entry.place else _("The server")


def subject_label(entry: AuditEntry, people: Mapping[str, str]) -> str:
    """Return a readable name of the subject."""
    kind, _colon, key = entry.subject.partition(":")
    if kind == "person":
        return people.get(entry.subject, _("an unknown user"))
    if kind == "setting":
        return _("setting “%(name)s”") % {"name": setting_label(key)}
    if kind == "apikey" and (name := people.get(entry.detail.get(audit.KEY_DETAIL, ""))):
        return _("API key “%(name)s”") % {"name": name}
    if kind == "chat":
        return _("chat %(number)s") % {"number": key}
    model = _model(kind)
    label = str(model._meta.verbose_name) if model else kind
    name = entry.detail.get("name") if isinstance(entry.detail, dict) else ""
    if name:
        return _("%(kind)s “%(name)s”") % {"kind": label, "name": name}
    return _("%(kind)s %(number)s") % {"kind": label, "number": key} if key else label


def setting_label(key: str) -> str:
    if key in LOGOS:
        return str(LOGOS[key])
    return str(SETTINGS[key].label) if key in SETTINGS else key


def format_detail(detail: Any, people: Mapping[str, str]) -> str:
    """Format the details as text, with names instead of tokens."""
    text = json.dumps(detail, ensure_ascii=False, indent=2)
    for token, name in people.items():
        text = text.replace(token, name)
    return text


def summarize_detail(detail: Any, people: Mapping[str, str], subject: str = "") -> str:
    """Return the details of an entry on one line."""
    return _(", ").join(detail_lines(detail, people, subject))


def detail_lines(detail: Any, people: Mapping[str, str], subject: str = "") -> list[str]:
    """Return the details of an entry, each as `label: value`."""
    kind = subject.partition(":")[0]
    values = dict(detail) if isinstance(detail, dict) else {}
    changes = values.pop("changes", {})
    values.pop("name", None)
    lines = []
    for name, value in sorted(values.items()):
        labels = VALUE_LABELS.get(name, {})
        label = labels.get(value) if isinstance(value, str) else None
        lines.append(_with_label(name, label or _format_value(value, people), kind))
    if isinstance(changes, list):
        return [*lines, *(_label(name, kind) for name in changes)]
    for name, value in sorted(changes.items()):
        change = str(value)
        if isinstance(value, list):
            change = " → ".join(_format_value(side, {}) for side in value) or _("changed")
        lines.append(_with_label(name, change, kind))
    return lines


def _with_label(name: str, text: LazyText, kind: str) -> str:
    return _("%(label)s: %(text)s") % {"label": _label(name, kind), "text": text}


def _label(name: str, kind: str) -> str:
    """Return what the form calls a field; changes are saved under the field's name."""
    if name in DETAIL_LABELS:
        return str(DETAIL_LABELS[name])
    model = get_user_model() if kind == "person" else _model(kind)
    try:
        return str(concrete_field(model, name).verbose_name) if model else name
    except FieldDoesNotExist:
        return name


def _format_value(value: Any, people: Mapping[str, str]) -> str:
    if isinstance(value, str):
        return people.get(value, value) or "—"
    if isinstance(value, list):
        return ", ".join(_format_value(item, people) for item in value) or "—"
    if isinstance(value, dict):
        return (
            ", ".join(f"{name} {_format_value(item, people)}" for name, item in value.items())
            or "—"
        )
    if value is None:
        return "—"
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    return json.dumps(value, ensure_ascii=False)


def verification_sentence(verification: ChainVerification) -> str:
    if verification.flaw is not None:
        return str(FLAW_SENTENCES[verification.flaw]) % {"number": verification.number}
    template = ngettext(
        "The audit log is intact: %(count)d entry checked, starting with entry %(first)d.",
        "The audit log is intact: %(count)d entries checked, starting with entry %(first)d.",
        verification.checked,
    )
    return template % {"count": verification.checked, "first": verification.since}


def _model(kind: str) -> type[Model] | None:
    for app in ("agents", "chat", "review", "problems", "alerts", "auth"):
        try:
            return apps.get_model(app, kind)
        except LookupError:
            continue
    return None
