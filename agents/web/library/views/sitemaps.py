"""Sitemaps of a collection: when they are fetched again, now, or no longer."""

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse, HttpResponseBadRequest
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from agents.access.requests import UserRequest
from agents.knowledge import ingestion
from agents.models import Collection, Sitemap

from .. import events, pages, uploads


@require_POST
def schedule(request: UserRequest, pk: int) -> HttpResponse:
    """Set how often a sitemap and its pages are fetched again."""
    sitemap = _get_editable(request, pk)
    interval = uploads.parse_interval(request.POST.get("interval", ""))
    if not interval:
        return HttpResponseBadRequest()
    ingestion.set_schedule(sitemap, interval, request.user)
    return _changed(request, sitemap)


@require_POST
def fetch(request: UserRequest, pk: int) -> HttpResponse:
    """Fetch a sitemap now: new pages are added, others are read again if they changed."""
    sitemap = _get_editable(request, pk)
    ingestion.fetch_sitemap(sitemap, request.user)
    return _changed(request, sitemap)


@require_POST
def remove(request: UserRequest, pk: int) -> HttpResponse:
    """Forget a sitemap; its pages stay."""
    sitemap = _get_editable(request, pk)
    sitemap.delete()
    return _changed(request, sitemap)


def _changed(request: UserRequest, sitemap: Sitemap) -> HttpResponse:
    events.documents_changed(sitemap.collection)
    return pages.to_collection(request, sitemap.collection_id)


def _get_editable(request: UserRequest, pk: int) -> Sitemap:
    """Return a sitemap that the user can change; 403 if they can only read its collection."""
    visible = Collection.objects.for_user(request.user).with_page()
    sitemap = get_object_or_404(
        Sitemap.objects.filter(collection__in=visible.values("pk")), pk=pk
    )
    editable = Collection.objects.editable_by(request.user).filter(pk=sitemap.collection_id)
    if not editable.exists():
        raise PermissionDenied(_("You have read-only access to this collection."))
    return sitemap
