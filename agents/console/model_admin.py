"""Common base of all console pages: prevents overwriting concurrent changes."""

import json
from collections.abc import Iterable
from typing import Any

from django import forms
from django.apps import apps
from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import model_ngettext, unquote
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.crypto import salted_hmac
from django.utils.text import capfirst
from django.utils.timesince import timesince
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from agents.models import Deletion
from agents.models.rights import group_label
from agents.models.secret import EncryptedValue, UnreadableSecret
from agents.web.presentation.badges import time_column

from . import deleted_rows
from .audited import AuditedMixin

SEEN_FIELD = "_seen"
SALT = "agents.console.model_admin"
DIGEST_CHARS = 12
DELETED_AT_ONCE = 20
CHANGED_MEANWHILE = _("This changed while you were editing it: %(fields)s.")
CHANGED_BY = _("%(who)s changed this %(time)s ago: %(fields)s.")
SAVE_AGAIN_HINT = _(
    "Your changes aren't saved yet. Save again to overwrite, or reload the page to "
    "see the current values."
)


class GroupsField(forms.ModelMultipleChoiceField):
    def label_from_instance(self, group: Group) -> Any:
        return group_label(group)


class ConsoleAdmin(AuditedMixin, admin.ModelAdmin):
    """A form remembers what it displayed; if that changed meanwhile, it is displayed again."""

    # Whether deleted rows can be restored, and under another name if theirs is taken.
    can_restore = True
    can_rename_deleted = True

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> Any:
        form_class = super().get_form(request, obj, change, **options)
        if obj is None or request.method != "POST":
            return form_class
        return with_conflict_check(form_class, request)

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """Display times in the user's format, relative where recent."""
        fields = self.opts.get_fields()
        time_fields = {
            field.name for field in fields if isinstance(field, models.DateTimeField)
        }
        time_fields = {name for name in time_fields if not hasattr(self, name)}
        columns = super().get_list_display(request)
        label = self.opts.label
        return [time_column(label, name) if name in time_fields else name for name in columns]

    def formfield_for_manytomany(self, db_field: Any, request: Any, **options: Any) -> Any:
        """Offer groups as checkboxes, because an installation has few."""
        if db_field.related_model is Group:
            options |= {"form_class": GroupsField, "widget": forms.CheckboxSelectMultiple}
        return super().formfield_for_manytomany(db_field, request, **options)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """Use the model's name as title, because not every reader can change the list."""
        if (
            "_save" in request.POST
            and self.list_editable
            and (saved := self._save_list(request))
        ):
            return saved
        context: dict[str, Any] = {"title": capfirst(self.opts.verbose_name_plural)}
        if self.can_restore and self.has_delete_permission(request):
            kind = self.opts.label
            context["deleted_count"] = deleted_rows.recent().filter(kind=kind).count()
        return super().changelist_view(request, context | (extra_context or {}))

    def _save_list(self, request: HttpRequest) -> HttpResponse | None:
        """Save the changed rows of a list one by one: other writers wait for the end of each.

        Django saves all in one transaction, and says what is wrong if None is returned.
        """
        if not self.has_change_permission(request):
            return None
        form_set = self.get_changelist_formset(request)
        django_admin: Any = self  # the type stubs lack this method
        rows = django_admin._get_list_editable_queryset(request, form_set.get_default_prefix())
        listed = form_set(request.POST, queryset=rows)
        if not listed.is_valid():
            return None
        changed = [form for form in listed.forms if form.has_changed()]
        if any(form.instance._state.adding for form in changed):
            return None
        for form in changed:
            with transaction.atomic():
                row = self.save_form(request, form, change=True)
                self.save_model(request, row, form, change=True)
                self.save_related(request, form, formsets=[], change=True)
                self.log_change(
                    request, row, self.construct_change_message(request, form, None)
                )
        if changed:
            text = ngettext(
                "%(count)s %(name)s was changed successfully.",
                "%(count)s %(name)s were changed successfully.",
                len(changed),
            )
            name = model_ngettext(self.opts, len(changed))
            self.message_user(
                request, text % {"count": len(changed), "name": name}, messages.SUCCESS
            )
        return redirect(request.get_full_path())

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        """Check permission first, so that it isn't revealed whether the row exists."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        return super().history_view(request, object_id, extra_context)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        """Delete without a transaction: looking at all that goes with a row takes long."""
        return self._delete_view(request, object_id, extra_context)  # type: ignore[attr-defined]

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self._remember(request, [obj])
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> None:
        """Delete in batches, because other writers wait for the end of each."""
        rows = list(queryset)
        self._remember(request, rows)
        for start in range(0, len(rows), DELETED_AT_ONCE):
            pks = [row.pk for row in rows[start : start + DELETED_AT_ONCE]]
            super().delete_queryset(request, self.model._default_manager.filter(pk__in=pks))

    def message_user(self, request: HttpRequest, message: Any, *args: Any, **more: Any) -> None:
        """Offer to undo a deletion in the message about it."""
        if url := vars(request).pop("undo_url", ""):
            more["extra_tags"] = url
        super().message_user(request, message, *args, **more)

    def may_restore(self, request: HttpRequest, deletion: Deletion) -> bool:
        """Whether this user can restore a deleted row, or delete it for good."""
        return self.has_delete_permission(request)

    def rows_to_restore(
        self, deletion: Deletion, rows: list[models.Model]
    ) -> list[models.Model]:
        """Return what is restored of a deleted row and of what was deleted with it."""
        return rows

    def erase_deleted(self, deletion: Deletion) -> None:
        """Delete what a deleted row still has outside the database."""

    def _remember(self, request: HttpRequest, rows: list[models.Model]) -> None:
        if deleted_rows.is_possible(rows):
            copies = deleted_rows.remember(request.user, rows, has_name=self.tells_values)
            items = ",".join(str(copy.pk) for copy in copies)
            vars(request)["undo_url"] = f"{reverse('admin:restore_deleted')}?items={items}"
            return
        for row in rows:
            self.erase_deleted(Deletion(kind=self.opts.label, object_id=str(row.pk)))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Leave out rows that only link two others: they have no name to display."""
        rows, counts, missing, protected = super().get_deleted_objects(objs, request)
        vars(request)["can_undo"] = deleted_rows.is_possible(list(objs))
        links = [
            model._meta
            for model in apps.get_models(include_auto_created=True)
            if model._meta.auto_created
        ]
        names = {str(link.verbose_name_plural) for link in links}
        left = {name: count for name, count in counts.items() if str(name) not in names}
        return without_models(rows, links), left, missing, protected

    def get_changelist_form(self, request: HttpRequest, **options: Any) -> Any:
        return super().get_changelist_form(request, **{"form": _ListRowForm, **options})

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **about: Any
    ) -> HttpResponse:
        row = about.get("obj")
        if row is not None and row.pk:
            context["seen"] = seen_digests(row, context["adminform"].form)
        return super().render_change_form(request, context, *args, **about)


def with_conflict_check(form_class: Any, request: HttpRequest) -> Any:
    """Return the form class, which rejects what changed since the page was rendered."""
    attributes = {"seen": request.POST.get(SEEN_FIELD, "")}
    return type("CarefulForm", (_ConflictCheckForm, form_class), attributes)


def seen_digests(row: models.Model, form: forms.BaseForm) -> str:
    """Return digests of what a page displays, which it sends back with the form."""
    return json.dumps(_field_digests(_current_row(row), form))


def without_models(rows: list[Any], kinds: Iterable[Any]) -> list[Any]:
    """Return the nested list of what is deleted without the rows of these models."""
    prefixes = tuple(f"{capfirst(kind.verbose_name)}: " for kind in kinds)
    return _without_prefixes(rows, prefixes)


def _without_prefixes(rows: list[Any], prefixes: tuple[str, ...]) -> list[Any]:
    found = [
        _without_prefixes(row, prefixes) if isinstance(row, list) else row
        for row in rows
        if isinstance(row, list) or not str(row).startswith(prefixes)
    ]
    return [row for row in found if row]


class _ListRowForm(forms.ModelForm):
    """A row in a list; only fields changed on this page are saved."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in set(self.fields) - {self._meta.model._meta.pk.name}:
            field = self.fields[name]
            field.show_hidden_initial = True
            # The column's heading is no label for a screen reader.
            said = f"{self.instance}: {field.label or name}"
            field.widget.attrs.setdefault("aria-label", said)


class _ConflictCheckForm(forms.BaseModelForm):
    seen = ""

    def clean(self) -> Any:
        cleaned = super().clean()
        if changed := self._conflicting_fields():
            self.add_error(None, _conflict_message(self.instance, changed))
        return cleaned

    def _conflicting_fields(self) -> list[str]:
        """Return fields that changed since the page was rendered; locks the row until saved."""
        try:
            page_digests = json.loads(self.seen)
        except ValueError:
            return []  # not submitted by our page
        current_digests = _field_digests(_current_row(self.instance, locked=True), self)
        names = [
            n
            for n in current_digests
            if isinstance(page_digests, dict)
            and page_digests.get(n, current_digests[n]) != current_digests[n]
        ]
        return [str(self.fields[name].label or name) for name in names]


def _current_row(row: models.Model, *, locked: bool = False) -> models.Model:
    rows = type(row)._base_manager.all()
    return (rows.select_for_update() if locked else rows).get(pk=row.pk)


def _field_digests(row: models.Model, form: forms.BaseForm) -> dict[str, str]:
    """Return a digest of each field of the form, for comparison only."""
    fields = [*row._meta.concrete_fields, *row._meta.many_to_many]
    own = {n: f.shown_of(row) for n, f in form.fields.items() if hasattr(f, "shown_of")}
    values = {f.name: _field_value(f, row) for f in fields if f.name in form.fields}
    return {name: _digest(value) for name, value in (values | own).items()}


def _field_value(field: Any, row: models.Model) -> Any:
    if field.many_to_many:
        return sorted(getattr(row, field.name).values_list("pk", flat=True))
    return _reveal_secret(getattr(row, field.attname))


def _digest(value: Any) -> str:
    return salted_hmac(SALT, repr(value), algorithm="sha256").hexdigest()[:DIGEST_CHARS]


def _reveal_secret(value: Any) -> Any:
    """Return a secret's value, because its encrypted form differs after every save."""
    if not isinstance(value, EncryptedValue):
        return value
    try:
        return value.reveal()
    except UnreadableSecret:
        return value.token


def _conflict_message(row: models.Model, changed: list[str]) -> str:
    values = {"fields": ", ".join(changed)}
    if not (last := _last_change(row)):
        return f"{CHANGED_MEANWHILE % values} {SAVE_AGAIN_HINT}"
    values |= {"who": last.user.get_username(), "time": timesince(last.action_time)}
    return f"{CHANGED_BY % values} {SAVE_AGAIN_HINT}"


def _last_change(row: models.Model) -> LogEntry | None:
    entries = LogEntry.objects.filter(
        content_type__app_label=row._meta.app_label,
        content_type__model=row._meta.model_name,
        object_id=unquote(str(row.pk)),
    )
    return entries.select_related("user").order_by("-action_time").first()
