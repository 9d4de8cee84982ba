"""Common base of all console pages: prevents overwriting concurrent changes."""

import json
from collections.abc import Iterable
from typing import Any

from django import forms
from django.apps import apps
from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import model_ngettext, unquote
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.utils.crypto import salted_hmac
from django.utils.text import capfirst
from django.utils.timesince import timesince
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from agents.access import recently_deleted
from agents.access.requests import signed_in_user
from agents.models import Deletion
from agents.models.catalog.rights import group_label
from agents.models.secret import EncryptedValue, UnreadableSecret
from agents.web.presentation.formats.badges import time_column
from agents.web.recently_deleted import undo_url

from . import deleted_rows
from .audited import AuditedMixin

SEEN_FIELD = "_seen"
SALT = "agents.console.admin_classes.model_admin"
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

    def __init__(self, model: type[models.Model], admin_site: admin.AdminSite) -> None:
        super().__init__(model, admin_site)
        if self.can_restore:
            recently_deleted.register(deleted_rows.CopiedRows(self))

    def admin_path(self, route: str, view: Any, name: str, **arguments: Any) -> URLPattern:
        """Return the URL of one more page, for users who can open the console."""
        return path(route, self.admin_site.admin_view(view), arguments, name=name)

    def set_values(self, request: HttpRequest, row: models.Model, **values: Any) -> None:
        """Change these fields of a row, with entries in its history and the audit log."""
        vars(request)["changes"] = {n: [getattr(row, n), v] for n, v in values.items()}
        vars(row).update(values)
        row.save(update_fields=list(values))
        self.log_change(request, row, [{"changed": {"fields": list(values)}}])

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
            kind = recently_deleted.kinds[self.opts.label]
            user = signed_in_user(request)
            context["deleted_count"] = recently_deleted.restorable(kind, user).count()
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

    def message_user(
        self, request: HttpRequest, message: Any, *args: Any, **options: Any
    ) -> None:
        """Offer to undo a deletion in the message about it."""
        if url := vars(request).pop("undo_url", ""):
            options["extra_tags"] = url
        super().message_user(request, message, *args, **options)

    def may_restore(self, user: User, deletion: Deletion) -> bool:
        """Whether a user who can delete such rows can restore this one."""
        return True

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
            keys = [f"{self.opts.label}:{copy.pk}" for copy in copies]
            vars(request)["undo_url"] = undo_url(keys, is_console=True)
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
        visible_counts = {
            name: count for name, count in counts.items() if str(name) not in names
        }
        return without_models(rows, links), visible_counts, missing, protected

    def get_changelist_form(self, request: HttpRequest, **options: Any) -> Any:
        return super().get_changelist_form(request, **{"form": _ListRowForm, **options})

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **options: Any
    ) -> HttpResponse:
        row = options.get("obj")
        if row is not None and row.pk:
            context["seen"] = seen_digests(row, context["adminform"].form)
        return super().render_change_form(request, context, *args, **options)


def with_conflict_check(form_class: Any, request: HttpRequest) -> Any:
    """Return the form class, which rejects what changed since the page was rendered."""
    attributes = {"posted_digests": request.POST.get(SEEN_FIELD, "")}
    return type("CarefulForm", (_ConflictCheckForm, form_class), attributes)


def seen_digests(row: models.Model, form: forms.BaseForm) -> str:
    """Return digests of what a page displays, which it sends back with the form."""
    saved_row = type(row)._base_manager.get(pk=row.pk)
    return json.dumps(_field_digests(saved_row, form))


def without_models(rows: list[Any], kinds: Iterable[Any]) -> list[Any]:
    """Return the nested list of what is deleted without the rows of these models."""
    prefixes = tuple(f"{capfirst(kind.verbose_name)}: " for kind in kinds)
    return _without_prefixes(rows, prefixes)


def _without_prefixes(rows: list[Any], prefixes: tuple[str, ...]) -> list[Any]:
    remaining = [
        _without_prefixes(row, prefixes) if isinstance(row, list) else row
        for row in rows
        if isinstance(row, list) or not str(row).startswith(prefixes)
    ]
    return [row for row in remaining if row]


class _ListRowForm(forms.ModelForm):
    """A row in a list; only fields changed on this page are saved."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in set(self.fields) - {self._meta.model._meta.pk.name}:
            field = self.fields[name]
            field.show_hidden_initial = True
            # The column's heading is no label for a screen reader.
            label = f"{self.instance}: {field.label or name}"
            field.widget.attrs.setdefault("aria-label", label)


class _ConflictCheckForm(forms.BaseModelForm):
    posted_digests = ""

    def clean(self) -> Any:
        """Reject fields that changed since the page was rendered; locks the row until saved."""
        cleaned = super().clean()
        try:
            page_digests = json.loads(self.posted_digests)
        except ValueError:
            return cleaned  # not submitted by our page
        rows = type(self.instance)._base_manager.select_for_update()
        digests = _field_digests(rows.get(pk=self.instance.pk), self)
        changed = [
            str(self.fields[name].label or name)
            for name, digest in digests.items()
            if isinstance(page_digests, dict) and page_digests.get(name, digest) != digest
        ]
        if changed:
            values = {"fields": ", ".join(changed)}
            entries = LogEntry.objects.filter(
                content_type__app_label=self.instance._meta.app_label,
                content_type__model=self.instance._meta.model_name,
                object_id=unquote(str(self.instance.pk)),
            )
            last = entries.select_related("user").order_by("-action_time").first()
            sentence = CHANGED_MEANWHILE % values
            if last is not None:
                values |= {"who": last.user.get_username(), "time": timesince(last.action_time)}
                sentence = CHANGED_BY % values
            self.add_error(None, f"{sentence} {SAVE_AGAIN_HINT}")
        return cleaned


def _field_digests(row: models.Model, form: forms.BaseForm) -> dict[str, str]:
    """Return a digest of each field of the form, for comparison only."""
    fields = [*row._meta.concrete_fields, *row._meta.many_to_many]
    values: dict[str, Any] = {}
    for field in fields:
        if field.name not in form.fields:
            continue
        if field.many_to_many:
            value = sorted(getattr(row, field.name).values_list("pk", flat=True))
        else:
            value = getattr(row, field.attname)
        if isinstance(value, EncryptedValue):
            # The encrypted form of a secret differs after every save.
            try:
                value = value.reveal()
            except UnreadableSecret:
                value = value.token
        values[field.name] = value
    for name, form_field in form.fields.items():
        if hasattr(form_field, "shown_of"):
            values[name] = form_field.shown_of(row)
    return {
        name: salted_hmac(SALT, repr(value), algorithm="sha256").hexdigest()[:DIGEST_CHARS]
        for name, value in values.items()
    }
