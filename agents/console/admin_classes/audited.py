"""Audit entries for what administrators add, change and delete."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from django import forms
from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from agents.access import audit
from agents.models.secret import EncryptedTextField

SECRET_PATTERN = re.compile(r"password|secret|token|credential|(^|_)key(_|$)")
SET = "set"
REMOVED = "removed"

Changes = dict[str, Any]


if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Any]
else:
    _ModelAdmin = object  # a mixin for ModelAdmin classes


class AuditedMixin(_ModelAdmin):
    """A ModelAdmin mixin that records who changed its rows."""

    # Whether rows contain configuration rather than users' text.
    tells_values = True

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> Any:
        changed_forms = [form]
        for formset in formsets or ():
            changed_forms += [inner for inner in formset.forms if inner.has_changed()]
        # Read by the next log_addition or log_change.
        vars(request)["changes"] = {
            name: change
            for changed in changed_forms
            for name, change in form_changes(changed).items()
        }
        return super().construct_change_message(request, form, formsets, add)

    def log_addition(self, request: HttpRequest, object: Model, message: Any) -> Any:
        self.keep(request, audit.ADDED, object, self._pop_changes(request))
        return super().log_addition(request, object, message)

    def log_change(self, request: HttpRequest, object: Model, message: Any) -> Any:
        self.keep(request, audit.CHANGED, object, self._pop_changes(request))
        return super().log_change(request, object, message)

    def log_changes(
        self, request: HttpRequest, rows: Sequence[Model], message: list[Any]
    ) -> None:
        """Record that several rows changed together, in as many statements as for one."""
        details = [(row, self.audit_details(row)) for row in rows]
        audit.record_all(request.user, audit.CHANGED, details)
        LogEntry.objects.log_actions(cast(int, request.user.pk), rows, CHANGE, message)

    def log_deletions(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        """Record deletions first: what can't be recorded isn't done."""
        for row in queryset:
            self.keep(request, audit.DELETED, row)
        return super().log_deletions(request, queryset)

    def keep(
        self, request: HttpRequest, action: str, row: Model, changes: Changes | None = None
    ) -> None:
        details = self.audit_details(row)
        if changes:
            details["changes"] = changes if self.tells_values else sorted(changes)
        audit.record(request.user, action, row, **details)

    def audit_details(self, row: Model) -> Changes:
        return {"name": str(row)} if self.tells_values else {}

    def _pop_changes(self, request: HttpRequest) -> Changes:
        return vars(request).pop("changes", {})


def form_changes(form: Any) -> Changes:
    """Return the changes as [before, after]; for a secret only what happened to it."""
    changes: Changes = {}
    for name in form.changed_data:
        if is_secret(form, name):
            value = getattr(form.instance, name, None)
            changes[name] = SET if value or name not in form.cleaned_data else REMOVED
        else:
            old_value = _display_value(form.fields.get(name), form.initial.get(name))
            new_value = _display_value(None, form.cleaned_data.get(name))
            changes[name] = [old_value, new_value]
    return changes


def is_secret(form: Any, name: str) -> bool:
    """Whether a field is secret, by its column, widget or name."""
    field = form.fields.get(name)
    if SECRET_PATTERN.search(name) or isinstance(
        getattr(field, "widget", None), forms.PasswordInput
    ):
        return True
    try:
        return isinstance(form._meta.model._meta.get_field(name), EncryptedTextField)
    except (AttributeError, FieldDoesNotExist):
        return False


def _display_value(field: Any, value: Any) -> Any:
    """Return a readable value: a related row by its name."""
    if isinstance(field, forms.ModelChoiceField) and value is not None:
        try:
            value = field.to_python(value) if not isinstance(value, list) else value
        except ValidationError:
            return str(value)
    if isinstance(value, Model):
        return str(value)
    if isinstance(value, QuerySet | list | tuple):
        return [_display_value(None, item) for item in value]
    if isinstance(value, Mapping):
        # A JSON field may contain secrets.
        return {
            name: SET
            if SECRET_PATTERN.search(str(name).lower())
            else _display_value(None, item)
            for name, item in value.items()
        }
    return value
