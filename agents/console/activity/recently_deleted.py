"""The administrators' page *Recently deleted*."""

from collections.abc import Callable
from functools import partial

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from agents.access.requests import UserRequest
from agents.web import recently_deleted

from ..admin_classes.pages import render_page


def urls(site: admin.AdminSite) -> list[URLPattern]:
    def admin_path(route: str, view: Callable[..., HttpResponse], name: str) -> URLPattern:
        def guarded(request: UserRequest) -> HttpResponse:
            if not recently_deleted.open_kinds(request.user, is_console=True):
                raise PermissionDenied
            return view(request)

        return path(route, site.admin_view(guarded), name=name)

    restore = partial(recently_deleted.restore, is_console=True)
    erase = partial(recently_deleted.erase, is_console=True)
    return [
        admin_path("recently-deleted/", list_view, "recently_deleted"),
        admin_path("recently-deleted/restore/", require_POST(restore), "restore_deleted"),
        admin_path("recently-deleted/erase/", require_POST(erase), "erase_deleted"),
    ]


@require_GET
def list_view(request: UserRequest) -> HttpResponse:
    """List what this administrator can restore, of one kind or of all."""
    context = recently_deleted.list_context(request, is_console=True)
    context["title"] = _("Recently deleted")
    return render_page(request, "admin/recently_deleted.html", context)
