"""Workflows in configuration files: the newest text and its schedules."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db import models
from django.forms import modelform_factory
from django.utils.translation import gettext as _

from agents.db.sentences import translate
from agents.engine.plans import ValuePath, read_definition
from agents.models import Schedule, WorkflowVersion
from agents.web.workflows import acceptance, versions

from .columns import normalize_newlines, not_found_message, unknown_key_message
from .kind import ResourceKind, ResourceValues, ValidationIssue
from .permissions import ConfigUser, has_model_perm, user_or_none

SCHEDULE_TYPES = {
    "user": str,
    "cron": str,
    "parameters": dict,
    "overlap": str,
    "enabled": bool,
}
SCHEDULE_DEFAULTS: ResourceValues = {
    "parameters": {},
    "overlap": Schedule.Overlap.SKIP.value,
    "enabled": True,
}
FIELD_KEYS = {
    "user": "user",
    "cron": "cron",
    "parameters": "parameters",
    "overlap": "overlap",
    "enabled": "enabled",
}


class WorkflowKind(ResourceKind):
    """Workflows; name and description are in the text itself."""

    parts = (WorkflowVersion, Schedule)

    def rows(self) -> models.QuerySet[Any]:
        return super().rows().prefetch_related("schedules__user")

    def describe(self, row: Any) -> ResourceValues:
        rows = Schedule.objects.filter(workflow=row).select_related("user")
        schedules = _sort_schedules(
            {
                "user": schedule.user.get_username(),
                "cron": schedule.cron,
                "parameters": normalize_newlines(schedule.parameters),
                "overlap": schedule.overlap,
                "enabled": schedule.enabled,
            }
            for schedule in rows
        )
        text = row.newest.text if row.newest else ""
        return {
            "enabled": row.enabled,
            "text": normalize_newlines(text),
            "schedules": schedules,
        }

    def allowed_keys(self, values: ResourceValues) -> list[str]:
        return ["enabled", "text", "schedules"]

    def mismatches(self, values: ResourceValues) -> Iterator[ValidationIssue]:
        if not isinstance(values.get("enabled", True), bool):
            yield ValidationIssue(("enabled",), _("Must be true or false."))
        if not isinstance(values.get("text", ""), str):
            yield ValidationIssue(("text",), _("Must be a workflow definition as text."))
        schedules = values.get("schedules", [])
        if not isinstance(schedules, list):
            yield ValidationIssue(("schedules",), _("Must be a list of schedules."))
            return
        for number, schedule in enumerate(schedules):
            path = ("schedules", number)
            if not isinstance(schedule, dict) or not {"user", "cron"} <= schedule.keys():
                yield ValidationIssue(path, _("A schedule needs user and cron."))
                continue
            for key, value in schedule.items():
                if key not in SCHEDULE_TYPES:
                    yield ValidationIssue((*path, key), unknown_key_message(key))
                elif not isinstance(value, SCHEDULE_TYPES[key]):
                    yield ValidationIssue((*path, key), _("This value has the wrong type."))

    def complete(self, row: Any, values: ResourceValues) -> ResourceValues:
        if not isinstance(schedules := values.get("schedules"), list):
            return values
        completed = [
            SCHEDULE_DEFAULTS | schedule if isinstance(schedule, dict) else schedule
            for schedule in schedules
        ]
        return {**values, "schedules": completed}

    def differs(self, current: ResourceValues, values: ResourceValues) -> bool:
        own_values = {name: values[name] for name in values if name != "schedules"}
        if any(current.get(name) != value for name, value in own_values.items()):
            return True
        current_schedules: list[ResourceValues] = current.get("schedules", [])
        schedules = values.get("schedules", current_schedules)
        return _sort_schedules(schedules) != current_schedules

    def missing_references(self, values: ResourceValues) -> Iterator[ValidationIssue]:
        people = get_user_model()._default_manager
        for number, schedule in enumerate(values.get("schedules", [])):
            name = schedule["user"]
            if not people.filter(**{people.model.USERNAME_FIELD: name}).exists():
                path = ("schedules", number, "user")
                yield ValidationIssue(path, not_found_message(_("user"), name))

    def keep(self, row: Any, values: ResourceValues, user: ConfigUser) -> list[ValidationIssue]:
        if lacking := list(self.missing_references(values)):
            return lacking
        if wrong := _save_text(row, values, user):
            return wrong
        if row.enabled != values.get("enabled", row.enabled):
            row.enabled = values["enabled"]
            row.save(update_fields=["enabled"])
        details = {"schedules": values["schedules"]} if "schedules" in values else {}
        if not self.differs(self.describe(row), details):
            return []
        return list(_save_schedules(row, values["schedules"], user))

    def needs(self, row: Any, values: ResourceValues) -> list[str]:
        return []  # no secrets


def _sort_schedules(schedules: Iterable[ResourceValues]) -> list[ResourceValues]:
    return sorted(schedules, key=lambda schedule: json.dumps(schedule, sort_keys=True))


def _save_text(row: Any, values: ResourceValues, user: ConfigUser) -> list[ValidationIssue]:
    newest = row.newest
    text = values.get("text", normalize_newlines(newest.text) if newest else "")
    definition = read_definition(text)
    if definition.problems:
        sentence = _("Workflow line %(line)d: %(problem)s")
        problems = (
            {"line": p.line, "problem": translate(p.message)} for p in definition.problems
        )
        return [ValidationIssue(("text",), sentence % problem) for problem in problems]
    if definition.name != row.name:
        sentence = _("The name in the workflow text is different: %(name)s.") % {
            "name": definition.name
        }
        return [ValidationIssue(("text",), sentence)]
    if newest is None or normalize_newlines(newest.text) != text:
        base = newest.number if newest else 0
        versions.save(text, user_or_none(user), workflow=row, base=base)
        row.refresh_from_db()
    return []


def _save_schedules(
    row: Any, schedules: list[ResourceValues], user: ConfigUser
) -> Iterator[ValidationIssue]:
    """Replace the schedules; one with the same user and time keeps its row."""
    if not all(has_model_perm(user, verb, Schedule) for verb in ("add", "change", "delete")):
        yield ValidationIssue(
            ("schedules",), _("You don't have permission to change schedules.")
        )
        return
    existing: dict[Any, list[Schedule]] = defaultdict(list)
    for schedule in row.schedules.select_related("user"):
        existing[schedule.user.get_username(), schedule.cron].append(schedule)
    for number, values in enumerate(schedules):
        same = existing[values["user"], values["cron"]]
        schedule = same.pop() if same else Schedule(workflow=row)
        yield from _save_schedule(number, schedule, values)
        if schedule.pk:
            acceptance.update_acceptance(schedule, user_or_none(user))
    for remaining in existing.values():
        for schedule in remaining:
            schedule.delete()


def _save_schedule(
    number: int, schedule: Schedule, values: ResourceValues
) -> Iterator[ValidationIssue]:
    model_admin = admin.site.get_model_admin(Schedule)
    fields = ["workflow", *FIELD_KEYS]
    classes = {"parameters": model_admin.formfield_overrides[models.JSONField]["form_class"]}
    form_class = modelform_factory(Schedule, model_admin.form, fields, field_classes=classes)
    user = get_user_model()._default_manager.get_by_natural_key(values["user"])
    data = {
        "workflow": schedule.workflow_id,
        "user": user.pk,
        "cron": values["cron"],
        "parameters": json.dumps(values["parameters"]),
        "overlap": values["overlap"],
        "enabled": values["enabled"],
    }
    form = form_class(data, instance=schedule)
    if form.is_valid():
        form.save()
        return
    for field, sentences in form.errors.items():
        key = FIELD_KEYS.get(field)
        path: ValuePath = ("schedules", number, key) if key else ("schedules", number)
        yield from (ValidationIssue(path, str(sentence)) for sentence in sentences)
