"""The page *Recently deleted*: restore rows of the console, or delete them for good."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from agents.access import audit
from agents.access.requests import UserRequest
from agents.models import Deletion

from . import deleted_rows

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedItem:
    """A row of the page; `new_name` is a free name if something else has its own."""

    deletion: Deletion
    kind: str
    days_left: int
    is_name_taken: bool
    new_name: str


def urls(site: admin.AdminSite) -> list[URLPattern]:
    def admin_path(route: str, view: Any, name: str) -> URLPattern:
        def guarded(request: HttpRequest, **arguments: Any) -> HttpResponse:
            if not dict(_admins(request)):
                raise PermissionDenied
            return view(request, **arguments)

        return path(route, site.admin_view(guarded), name=name)

    return [
        admin_path("recently-deleted/", list_view, "recently_deleted"),
        admin_path("recently-deleted/restore/", restore_view, "restore_deleted"),
        admin_path("recently-deleted/<int:pk>/erase/", erase_view, "erase_deleted"),
    ]


@require_GET
def list_view(request: UserRequest) -> HttpResponse:
    """List what this user can restore, of one kind or of all."""
    admins = dict(_admins(request))
    everything = deleted_rows.recent().filter(kind__in=admins).select_related("user")
    everything = everything.defer("rows")  # large, and only needed to restore
    kinds = sorted(set(everything.order_by().values_list("kind", flat=True)))
    chosen = request.GET.get("kind", "")
    rows = everything.filter(kind=chosen) if chosen else everything
    restorable = [row for row in rows if admins[row.kind].may_restore(request, row)]
    page = Paginator(restorable, PAGE_SIZE).get_page(request.GET.get("p"))
    list_admin = admins.get(chosen)
    context = {
        **admin.site.each_context(request),
        "title": _("Recently deleted"),
        "page": page,
        "items": [_item(row) for row in page],
        "kinds": [(kind, _plural(kind)) for kind in kinds],
        "chosen": chosen,
        "back_url": list_admin and reverse(_list_name(list_admin)),
        "back_name": list_admin and capfirst(list_admin.opts.verbose_name_plural),
        "days": deleted_rows.KEPT_FOR.days,
    }
    return render(request, "admin/recently_deleted.html", context)


@require_POST
def restore_view(request: UserRequest) -> HttpResponse:
    """Restore these rows; what can't be restored stays on the page, with the reason."""
    numbers = filter(str.isdecimal, request.GET.get("items", "").split(","))
    items = [_find(request, int(number)) for number in numbers]
    if not items:
        raise Http404
    name = request.POST.get("name", "").strip() if len(items) == 1 else ""
    restored = [row for item in items if (row := _restore(request, item, name))]
    if len(restored) < len(items):
        return redirect(f"{reverse('admin:recently_deleted')}?kind={items[0].kind}")
    model_admin = admin.site.get_model_admin(type(restored[0]))
    return redirect(_list_name(model_admin))


@require_POST
def erase_view(request: UserRequest, pk: int) -> HttpResponse:
    """Delete a deleted row for good."""
    deletion = _find(request, pk)
    kind = deletion.kind
    with transaction.atomic():
        subject = _subject(deletion)
        details = {"name": deletion.name} if deletion.name else {}
        deleted_rows.erase(deletion)
        audit.record(request.user, audit.DELETED_FOR_GOOD, subject, **details)
    messages.success(request, _("“%(name)s” was deleted permanently.") % {"name": deletion})
    return redirect(f"{reverse('admin:recently_deleted')}?kind={kind}")


def _restore(request: UserRequest, deletion: Deletion, name: str) -> Any:
    """Restore a row and tell the user; None if that isn't possible."""
    label = str(deletion)
    try:
        with transaction.atomic():
            restored = deleted_rows.restore(deletion, name)
            model_admin: Any = admin.site.get_model_admin(type(restored.row))
            model_admin.keep(request, audit.RESTORED, restored.row)
    except deleted_rows.CannotRestore as error:
        sentence = _("“%(name)s” can't be restored. %(reason)s")
        messages.error(request, sentence % {"name": label, "reason": error})
        return None
    messages.success(request, _("“%(name)s” was restored.") % {"name": restored.row})
    if restored.is_disabled:
        sentence = _(
            "“%(name)s” is disabled, because what it was limited to no longer exists. Check "
            "who can use it, then enable it."
        )
        messages.warning(request, sentence % {"name": restored.row})
    if restored.left_out:
        sentence = ngettext(
            "%(count)d row that belonged to “%(name)s” wasn't restored, because what it refers "
            "to no longer exists.",
            "%(count)d rows that belonged to “%(name)s” weren't restored, because what they "
            "refer to no longer exists.",
            restored.left_out,
        )
        messages.warning(request, sentence % {"count": restored.left_out, "name": restored.row})
    return restored.row


def _admins(request: HttpRequest) -> Iterator[tuple[str, Any]]:
    """Yield the pages whose rows this user can delete, by the label of their model."""
    for model, model_admin in admin.site._registry.items():
        can_restore = getattr(model_admin, "can_restore", False)
        if can_restore and model_admin.has_delete_permission(request):
            yield model._meta.label, model_admin


def _find(request: HttpRequest, pk: int) -> Deletion:
    deletion = deleted_rows.recent().filter(pk=pk).first()
    model_admin = dict(_admins(request)).get(deletion.kind) if deletion else None
    if (
        deletion is None
        or model_admin is None
        or not model_admin.may_restore(request, deletion)
    ):
        raise Http404
    return deletion


def _item(deletion: Deletion) -> DeletedItem:
    model = apps.get_model(deletion.kind)
    model_admin: Any = admin.site.get_model_admin(model)
    time_left = deletion.created_at + deleted_rows.KEPT_FOR - timezone.now()
    is_taken = bool(deletion.name) and deleted_rows.is_name_taken(deletion)
    can_rename = is_taken and model_admin.can_rename_deleted
    new_name = deleted_rows.free_name(deletion) if can_rename else ""
    return DeletedItem(
        deletion=deletion,
        kind=str(capfirst(model._meta.verbose_name)),
        days_left=math.ceil(time_left.total_seconds() / 86_400),
        is_name_taken=is_taken,
        new_name=new_name,
    )


def _plural(kind: str) -> str:
    return str(capfirst(apps.get_model(kind)._meta.verbose_name_plural))


def _list_name(model_admin: Any) -> str:
    return f"admin:{model_admin.opts.app_label}_{model_admin.opts.model_name}_changelist"


def _subject(deletion: Deletion) -> Any:
    """Return the deleted row without its values, for the audit log."""
    row = apps.get_model(deletion.kind)()
    row.pk = deletion.object_id
    return row
