"""Sources of a collection: add, change, check, pause, remove."""

from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from agents.access import audit
from agents.access.requests import UserRequest
from agents.db import claims
from agents.knowledge.sources import check_soon
from agents.models import Collection, DocumentSource
from agents.models.knowledge.sources import followable_by
from agents.web.recently_deleted import offer_undo

from .. import deletion, events, pages
from ..sources import MAX_SOURCES, SourceForm
from .collections import render_collection


@require_POST
@sensitive_post_parameters("token", "secret_key")
def add(request: UserRequest, pk: int) -> HttpResponse:
    """Have a collection of the installation follow a place."""
    collection = get_object_or_404(followable_by(request.user), pk=pk)
    source = DocumentSource(collection=collection)
    form = SourceForm(request.POST, source=source, user=request.user, auto_id="source-new-%s")
    if collection.sources.count() >= MAX_SOURCES:
        sentence = _("A collection can have %(limit)d sources.") % {"limit": MAX_SOURCES}
        form.add_error(None, sentence)
    return _save(request, form, audit.ADDED)


@require_POST
@sensitive_post_parameters("token", "secret_key")
def edit(request: UserRequest, pk: int) -> HttpResponse:
    source = _get(request, pk)
    form = SourceForm(request.POST, source=source, user=request.user, auto_id=f"source-{pk}-%s")
    return _save(request, form, audit.CHANGED)


def _save(request: UserRequest, form: SourceForm, action: str) -> HttpResponse:
    collection = form.source.collection
    if not form.is_valid():
        return render_collection(request, collection, 422, invalid_source=form)
    with transaction.atomic():
        source = form.save()
        _record(request, action, source, kind=source.kind, place=source.place)
    return _changed(request, collection)


@require_POST
def act(request: UserRequest, pk: int, action: str) -> HttpResponse:
    """Check a source now, pause it, resume it, or delete what it has lost."""
    source = _get(request, pk)
    match action:
        case "check" if source.enabled:
            check_soon(source)
        case "pause":
            values = {"enabled": False, "next_check_at": None, **claims.NO_LEASE}
            with transaction.atomic():
                DocumentSource.objects.filter(pk=pk).update(**values)
                _record(request, audit.CHANGED, source, enabled=False)
        case "resume":
            with transaction.atomic():
                check_soon(source, enabled=True)
                _record(request, audit.CHANGED, source, enabled=True)
        case "approve" if source.enabled:
            # Not more than what the page said.
            shown = request.POST.get("count", "")
            count = min(int(shown) if shown.isdecimal() else 0, source.missing)
            with transaction.atomic():
                check_soon(source, deletable=count)
                _record(request, audit.CHANGED, source, approved_deletions=count)
        case _:
            raise Http404
    return _changed(request, source.collection)


@require_POST
def remove(request: UserRequest, pk: int) -> HttpResponse:
    """Remove a source; its documents stay, unless they are to be deleted, too."""
    source = _get(request, pk)
    collection = source.collection
    with transaction.atomic():
        documents = list(source.documents.filter(collection=collection))
        _record(request, audit.DELETED, source)
        source.delete()
        if documents and "documents" in request.POST:
            removal = deletion.delete_documents(collection, documents, request.user)
            sentence = _("“%(title)s” was deleted.") % {"title": deletion.title(removal)}
            offer_undo(request, sentence, f"document:{removal.pk}")
    return _changed(request, collection)


def _record(
    request: UserRequest, action: str, source: DocumentSource, **detail: object
) -> None:
    collection = source.collection.name
    audit.record(request.user, action, source, collection=collection, **detail)


def _changed(request: UserRequest, collection: Collection) -> HttpResponse:
    events.documents_changed(collection)
    return pages.to_collection(request, collection.pk)


def _get(request: UserRequest, pk: int) -> DocumentSource:
    managed = DocumentSource.objects.managed_by(request.user).select_related("collection")
    return get_object_or_404(managed, pk=pk)
