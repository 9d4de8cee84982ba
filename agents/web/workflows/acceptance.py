"""Acceptance: a schedule runs with its owner's permissions, so its owner must accept it.

This covers the workflow's version, its parameters, its times and its owner. If someone else
changes any of these, the schedule waits for its owner.
"""

import json
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.translation import gettext as _

from agents.access import audit
from agents.models import Schedule, WorkflowVersion
from agents.web.workflows.versions import DiffLine, diff_lines

SALT = "agents.web.workflows.acceptance"
SWITCHED_OFF = "switched_off"  # set by the owner, so that no one else undoes it
AcceptanceTerms = dict[str, Any]


class StaleAcceptance(Exception):
    """Raised when the terms differ from what the owner saw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceRequest:
    """What a schedule would start, next to what its owner accepted before."""

    schedule: Schedule
    version: WorkflowVersion
    accepted_version: WorkflowVersion | None  # None if nothing of this workflow was accepted

    @property
    def seal(self) -> str:
        """The seal that binds an answer to these terms."""
        payload = json.dumps(terms(self.schedule, self.version), sort_keys=True)
        return salted_hmac(SALT, payload, algorithm="sha256").hexdigest()

    @property
    def why_held(self) -> str:
        return why_held(self.schedule, self.version)

    @property
    def lines(self) -> list[DiffLine]:
        """The changed lines of the workflow since acceptance."""
        return (
            list(diff_lines(self.accepted_version.text, self.version.text))
            if self.accepted_version
            else []
        )

    @property
    def facts(self) -> list[tuple[str, str, str]]:
        """Name, value and, if it differs, the accepted value."""
        accepted = self.schedule.accepted or {}
        current_terms = terms(self.schedule, self.version)
        names = {"cron": _("cron expression"), "parameters": _("parameters")}
        return [
            (
                label,
                _format_value(current_terms[name]),
                _format_value(accepted.get(name, current_terms[name])),
            )
            for name, label in names.items()
        ]


def build_request(schedule: Schedule) -> AcceptanceRequest | None:
    """Return what needs or has acceptance; None if the workflow has no version."""
    version = schedule.workflow.newest
    if version is None:
        return None
    accepted = schedule.accepted or {}
    is_same = accepted.get("workflow") == schedule.workflow_id
    accepted_versions = schedule.workflow.versions.filter(number=accepted.get("version", 0))
    return AcceptanceRequest(
        schedule=schedule,
        version=version,
        accepted_version=accepted_versions.first() if is_same else None,
    )


def awaiting_acceptance(user: User) -> list[Schedule]:
    """Return schedules that wait for this user's acceptance."""
    mine = Schedule.objects.filter(user=user, enabled=True, workflow__enabled=True)
    rows = mine.select_related("workflow", "user")
    return [row for row in rows if why_held(row, row.workflow.newest)]


def terms(schedule: Schedule, version: WorkflowVersion) -> AcceptanceTerms:
    return {
        "person": schedule.user_id,
        "workflow": schedule.workflow_id,
        "version": version.number,
        "parameters": schedule.parameters,
        "cron": schedule.cron,
    }


def why_held(schedule: Schedule, version: WorkflowVersion | None) -> str:
    """Return why it starts nothing, or an empty string if it is accepted."""
    if version is None or schedule.accepted == (current_terms := terms(schedule, version)):
        return ""
    names = {"owner": schedule.user.get_username(), "new": version.number}
    accepted = schedule.accepted or {}
    if accepted.get("person") != schedule.user_id:
        return _("Waiting for %(owner)s to accept this schedule.") % names
    if accepted.get(SWITCHED_OFF):
        return _("%(owner)s turned this schedule off. Only %(owner)s can turn it on.") % names
    if {name for name in current_terms if accepted.get(name) != current_terms[name]} == {
        "version"
    }:
        names |= {"old": accepted["version"]}
        sentence = _("Waiting for %(owner)s to accept version %(new)d. Accepted: %(old)d.")
        return sentence % names
    return _("This schedule was changed. Waiting for %(owner)s to accept it.") % names


def update_acceptance(schedule: Schedule, by: User | None) -> bool:
    """Return whether it can start after it was saved.

    Owners accept what they save themselves, except a version they haven't seen.
    """
    version = schedule.workflow.newest
    if version is None or by is None or by.pk != schedule.user_id:
        return version is not None and not why_held(schedule, version)
    accepted = schedule.accepted or {}
    current_terms = terms(schedule, version)
    is_known = all(accepted.get(name) == current_terms[name] for name in ("person", "workflow"))
    is_unseen = is_known and accepted["version"] != version.number
    new_terms = accepted if is_unseen else current_terms
    new_terms = {name: value for name, value in new_terms.items() if name != SWITCHED_OFF}
    schedule.accepted = new_terms if schedule.enabled else {**new_terms, SWITCHED_OFF: True}
    Schedule.objects.filter(pk=schedule.pk).update(accepted=schedule.accepted)
    return not is_unseen


@transaction.atomic
def record_answer(schedule: Schedule, by: User, seal: str, *, is_accepted: bool) -> None:
    """Save the owner's answer; raise StaleAcceptance if they saw other terms."""
    rows = Schedule.objects.select_for_update().select_related("workflow", "user")
    request = build_request(rows.get(pk=schedule.pk, user=by))
    if request is None or not constant_time_compare(request.seal, seal):
        raise StaleAcceptance
    details = {"name": str(schedule), "version": request.version.number}
    if is_accepted:
        current_terms = terms(request.schedule, request.version)
        Schedule.objects.filter(pk=schedule.pk).update(accepted=current_terms, trouble="")
        audit.record(by, audit.SCHEDULE_ACCEPTED, schedule, **details)
    else:
        # Enabling it again must not count as acceptance.
        Schedule.objects.filter(pk=schedule.pk).update(enabled=False, accepted=None)
        audit.record(by, audit.SCHEDULE_DECLINED, schedule, **details)


def _format_value(value: Any) -> str:
    if not value:
        return "—"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
