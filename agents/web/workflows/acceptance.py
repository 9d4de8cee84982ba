"""Acceptance: a schedule runs with its owner's permissions, so its owner must accept it.

This covers what it starts (the workflow's version and parameters, or the agent and the
message to it), where its answer goes, its times and its owner. If someone else changes any of
these, the schedule waits for its owner.
"""

import json
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
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
    version: WorkflowVersion | None  # None if it starts an agent
    accepted_version: WorkflowVersion | None  # None if nothing of this workflow was accepted

    @property
    def number(self) -> int | None:
        """The workflow's version, if it starts one."""
        return self.version.number if self.version else None

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
            if self.accepted_version and self.version
            else []
        )

    @property
    def facts(self) -> list[tuple[str, str, str]]:
        """Name, value and, if it differs, the accepted value."""
        accepted = self.schedule.accepted or {}
        current_terms = terms(self.schedule, self.version)
        names = {
            "cron": _("cron expression"),
            "parameters": _("parameters"),
            "agent": _("agent"),
            "question": _("message to the agent"),
            "result": _("send the answer to"),
        }
        return [
            (
                label,
                _format_value(current_terms[name]),
                _format_value(accepted.get(name, current_terms[name])),
            )
            for name, label in names.items()
            if name in current_terms
        ]


def build_request(schedule: Schedule) -> AcceptanceRequest | None:
    """Return what needs or has acceptance; None if the workflow has no version."""
    version = newest_version(schedule)
    if schedule.workflow is None:
        return AcceptanceRequest(schedule=schedule, version=None, accepted_version=None)
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


def newest_version(schedule: Schedule) -> WorkflowVersion | None:
    """Return what the schedule would start now; None for an agent."""
    return None if schedule.workflow is None else schedule.workflow.newest


def awaiting_acceptance(user: User) -> list[Schedule]:
    """Return schedules that wait for this user's acceptance."""
    is_startable = Q(workflow=None) | Q(workflow__enabled=True)
    mine = Schedule.objects.filter(is_startable, user=user, enabled=True)
    rows = mine.select_related("workflow", "agent", "user", "result_channel")
    return [row for row in rows if why_held(row, newest_version(row))]


def terms(schedule: Schedule, version: WorkflowVersion | None) -> AcceptanceTerms:
    values = {
        "person": schedule.user_id,
        "workflow": schedule.workflow_id,
        "version": version.number if version else 0,
        "parameters": schedule.parameters,
        "cron": schedule.cron,
    }
    if schedule.agent is not None:
        values |= {"agent": schedule.agent.name, "question": schedule.question}
    if schedule.result_channel is not None:
        # With the id: another channel may get its name.
        values["result"] = f"{schedule.result_channel} ({schedule.result_channel_id})"
    return values


def why_held(schedule: Schedule, version: WorkflowVersion | None) -> str:
    """Return why it starts nothing, or an empty string if it is accepted."""
    if version is None and schedule.workflow_id is not None:
        return ""
    current_terms = terms(schedule, version)
    if schedule.accepted == current_terms:
        return ""
    new_number = version.number if version else 0
    names = {"owner": schedule.user.get_username(), "new": new_number}
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
    version = newest_version(schedule)
    is_missing = version is None and schedule.workflow_id is not None
    if is_missing or by is None or by.pk != schedule.user_id:
        return not is_missing and not why_held(schedule, version)
    accepted = schedule.accepted or {}
    current_terms = terms(schedule, version)
    is_known = all(accepted.get(name) == current_terms[name] for name in ("person", "workflow"))
    is_unseen = is_known and accepted["version"] != current_terms["version"]
    new_terms = accepted if is_unseen else current_terms
    new_terms = {name: value for name, value in new_terms.items() if name != SWITCHED_OFF}
    schedule.accepted = new_terms if schedule.enabled else {**new_terms, SWITCHED_OFF: True}
    Schedule.objects.filter(pk=schedule.pk).update(accepted=schedule.accepted)
    return not is_unseen


@transaction.atomic
def record_answer(schedule: Schedule, by: User, seal: str, *, is_accepted: bool) -> None:
    """Save the owner's answer; raise StaleAcceptance if they saw other terms."""
    # Only this row is locked: the joined ones may be missing.
    locked = Schedule.objects.select_for_update(of=("self",))
    rows = locked.select_related("workflow", "agent", "user", "result_channel")
    request = build_request(rows.get(pk=schedule.pk, user=by))
    if request is None or not constant_time_compare(request.seal, seal):
        raise StaleAcceptance
    details = {"name": str(schedule), "version": request.number}
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
