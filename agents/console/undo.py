"""Undo of deletions: the rows are remembered for ten minutes and can be restored as they were.

Rows are copied column by column, not serialized by Django, whose JSON leaves out secrets.
"""

import json
from collections.abc import Iterable, Iterator
from datetime import timedelta
from itertools import chain
from typing import Any, cast

from django.apps import apps
from django.contrib import messages
from django.contrib.admin.utils import NestedObjects
from django.core.serializers.json import DjangoJSONEncoder
from django.db import IntegrityError, models, router, transaction
from django.dispatch import Signal
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from agents.access import audit
from agents.access.requests import UserRequest
from agents.models import Deletion
from agents.models.secret import EncryptedTextField, EncryptedValue

KEPT_FOR = timedelta(minutes=10)
# Beyond this a copy takes longer than the deletion: the page says that it can't be undone.
MAX_ROWS = 5_000

Row = dict[str, Any]

# Sent with the rows of one model that are about to be deleted. Receivers return what else that
# changes: columns with their value before and the one that the deletion leaves.
about_to_delete = Signal()


class TooManyRows(Exception):
    """Raised when a deletion touches more rows than can be restored."""


def is_possible(rows: Iterable[models.Model]) -> bool:
    """Whether deleting these rows can be undone."""
    try:
        _copy(rows)
    except TooManyRows:
        return False
    return True


def remember(user: Any, rows: Iterable[models.Model]) -> str:
    """Copy what is about to be deleted; return the URL that restores it, if that's possible."""
    Deletion.objects.filter(created_at__lt=timezone.now() - KEPT_FOR).delete()
    try:
        copied = json.dumps(_copy(rows), cls=DjangoJSONEncoder)
    except TooManyRows:
        return ""
    kept = Deletion.objects.create(user=user, rows=copied)
    return reverse("admin:undo", args=[kept.pk])


@require_POST
def undo_view(request: UserRequest, pk: int) -> HttpResponse:
    """Restore what this user deleted, and show its list."""
    recent = Deletion.objects.filter(user=request.user.pk, pk=pk)
    kept = recent.filter(created_at__gte=timezone.now() - KEPT_FOR).first()
    if kept is None:
        raise Http404
    copied = json.loads(kept.rows.reveal())
    first = apps.get_model(copied["rows"][0]["model"])
    if not request.user.has_perm(f"{first._meta.app_label}.add_{first._meta.model_name}"):
        raise Http404
    try:
        with transaction.atomic():
            restored = _restore(copied)
            audit.record(request.user, audit.ADDED, restored, name=str(restored), restored=True)
            kept.delete()
    except IntegrityError:
        messages.error(
            request,
            _("It can't be restored: something else has its name now, or belongs to it."),
        )
    else:
        messages.success(request, _("“%(name)s” was restored.") % {"name": restored})
    return redirect(f"admin:{first._meta.app_label}_{first._meta.model_name}_changelist")


def message_with_undo(request: HttpRequest, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a message, with the URL that undoes what it says."""
    url = vars(request).pop("undo_url", "")
    return {**options, "extra_tags": url} if url else options


def _copy(rows: Iterable[models.Model]) -> dict[str, Any]:
    """Return the rows, what is deleted with them, and references that are set to null."""
    rows = list(rows)
    collector = NestedObjects(using=router.db_for_write(type(rows[0])), origin=rows)
    collector.collect(rows)
    found = {(type(row), row.pk): row for row in rows}
    found |= {(type(row), row.pk): row for model in collector.data.values() for row in model}
    references = list(_references(collector))
    for _receiver, others in about_to_delete.send(type(rows[0]), rows=rows):
        references += cast(list[Row], others)
    if len(found) + len(references) > MAX_ROWS:
        raise TooManyRows
    return {"rows": [_values(row) for row in found.values()], "references": references}


def _references(collector: NestedObjects) -> Iterator[Row]:
    for (field, _value), batches in collector.field_updates.items():
        # A list or a queryset, whatever the stubs say.
        rows: Iterable[models.Model] = chain.from_iterable(
            cast(list[Any], batch)[: MAX_ROWS + 1] for batch in batches
        )
        for row in rows:
            yield {
                "model": row._meta.label,
                "pk": row.pk,
                "field": field.attname,
                "value": getattr(row, field.attname),
                "left": None,
            }


def _values(row: models.Model) -> Row:
    fields = {field.attname: _value(row, field) for field in row._meta.concrete_fields}
    return {"model": row._meta.label, "fields": fields}


def _value(row: models.Model, field: Any) -> Any:
    value = getattr(row, field.attname)
    if isinstance(value, EncryptedValue):
        return value.token
    return value.name if isinstance(field, models.FileField) else value


def _restore(copied: dict[str, Any]) -> models.Model:
    """Insert the rows as they were; return the first one."""
    rows = [_row(about) for about in copied["rows"]]
    for row in rows:
        row.save_base(raw=True, force_insert=True)
    for about in copied["references"]:
        kept = apps.get_model(about["model"])._base_manager.filter(pk=about["pk"])
        is_untouched = {about["field"]: about.get("left")}
        kept.filter(**is_untouched).update(**{about["field"]: about["value"]})
    return rows[0]


def _row(about: Row) -> models.Model:
    model = apps.get_model(about["model"])
    row = model()
    for field in model._meta.concrete_fields:
        if field.attname in about["fields"]:
            setattr(row, field.attname, _python(field, about["fields"][field.attname]))
    return row


def _python(field: Any, value: Any) -> Any:
    if isinstance(field, EncryptedTextField):
        return EncryptedValue(value, field.empty)
    return value if value is None else field.to_python(value)
