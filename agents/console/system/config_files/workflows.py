"""Workflows in configuration files: the newest text and its schedules."""

from collections.abc import Iterator
from typing import Any

from django.db import models
from django.utils.translation import gettext as _

from agents.db.sentences import translate
from agents.engine.plans import read_definition
from agents.models import Schedule, WorkflowVersion
from agents.web.workflows import versions

from .columns import normalize_newlines
from .kind import ResourceKind, ResourceValues, ValidationIssue
from .permissions import ConfigUser, user_or_none
from .schedules import OF_WORKFLOWS, described_rows


class WorkflowKind(ResourceKind):
    """Workflows; name and description are in the text itself."""

    parts = (WorkflowVersion, Schedule)

    def rows(self) -> models.QuerySet[Any]:
        return super().rows().prefetch_related("schedules__user")

    def describe(self, row: Any) -> ResourceValues:
        rows = described_rows().filter(workflow=row)
        text = row.newest.text if row.newest else ""
        return {
            "enabled": row.enabled,
            "text": normalize_newlines(text),
            "schedules": OF_WORKFLOWS.describe(rows),
        }

    def allowed_keys(self, values: ResourceValues) -> list[str]:
        return ["enabled", "text", "schedules"]

    def mismatches(self, values: ResourceValues) -> Iterator[ValidationIssue]:
        if not isinstance(values.get("enabled", True), bool):
            yield ValidationIssue(("enabled",), _("Must be true or false."))
        if not isinstance(values.get("text", ""), str):
            yield ValidationIssue(("text",), _("Must be a workflow definition as text."))
        yield from OF_WORKFLOWS.mismatches(values)

    def complete(self, row: Any, values: ResourceValues) -> ResourceValues:
        return OF_WORKFLOWS.complete(values)

    def differs(self, current: ResourceValues, values: ResourceValues) -> bool:
        own_values = {name: values[name] for name in values if name != "schedules"}
        if any(current.get(name) != value for name, value in own_values.items()):
            return True
        return OF_WORKFLOWS.differ(current, values)

    def missing_references(self, values: ResourceValues) -> Iterator[ValidationIssue]:
        yield from OF_WORKFLOWS.missing_references(values)

    def keep(self, row: Any, values: ResourceValues, user: ConfigUser) -> list[ValidationIssue]:
        if lacking := list(self.missing_references(values)):
            return lacking
        if wrong := _save_text(row, values, user):
            return wrong
        if row.enabled != values.get("enabled", row.enabled):
            row.enabled = values["enabled"]
            row.save(update_fields=["enabled"])
        return OF_WORKFLOWS.keep(row, values, user)

    def needs(self, row: Any, values: ResourceValues) -> list[str]:
        return []  # no secrets


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
