"""Documents: add, delete, read again, view and download."""

import re
from urllib.parse import urlsplit

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse, HttpResponseBadRequest
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST, require_safe
from django.views.decorators.vary import vary_on_headers

from agents.access.requests import UserRequest
from agents.db.sanitize import parse_id, sanitize_text
from agents.knowledge import files, ingestion
from agents.models import Collection, Document
from agents.web.recently_deleted import offer_undo

from .. import deletion, events, listing, pages, uploads, viewer
from .collections import render_collection

MAX_FILES = 1_000  # per request, without JavaScript
MAX_QUERY_CHARS = 200
# Pages that link to documents; the viewer leads back to them.
BACK = re.compile(r"/(?:chat/\d+|traces/\d+|projects/\d+|library/\d+|library/search)/")


@require_POST
def upload(request: UserRequest, pk: int) -> HttpResponse:
    """Add uploaded files; a page with JavaScript sends them one by one."""
    collection = get_editable(request, pk)
    paths = request.POST.getlist("path")
    uploaded = request.FILES.getlist("file")[:MAX_FILES]
    new_uploads = [
        uploads.Upload(file=file, path=paths[index] if index < len(paths) else "")
        for index, file in enumerate(uploaded)
    ]
    is_script = bool(request.headers.get("X-Upload"))
    try:
        added = uploads.add_files(collection, request.user, new_uploads)
    except uploads.UploadRejected as reason:
        if is_script:
            return HttpResponse(str(reason), content_type="text/plain", status=422)
        return render_collection(request, collection, 422, problem=str(reason))
    if is_script:
        rows = [listing.DocumentRow(document=document, may_edit=True) for document in added]
        return render(request, "library/_document_rows.html", {"rows": rows})
    events.documents_changed(collection)
    return pages.to_collection(request, collection.pk)


@require_POST
def add(request: UserRequest, pk: int) -> HttpResponse:
    """Add a web page, or the pages of a sitemap."""
    collection = get_editable(request, pk)
    source = uploads.parse_web_source(request.POST)
    try:
        source.add(collection, request.user)
    except uploads.UploadRejected as reason:
        return render_collection(request, collection, 422, problem=str(reason), web=source)
    events.documents_changed(collection)
    return pages.to_collection(request, collection.pk)


@require_POST
def delete(request: UserRequest, pk: int) -> HttpResponse:
    """Delete the selected documents; those of other collections are left out."""
    collection = get_editable(request, pk)
    pks = filter(None, map(parse_id, request.POST.getlist("document")))
    selected = list(collection.documents.filter(pk__in=pks))
    if selected:
        removal = deletion.delete_documents(collection, selected, request.user)
        sentence = _("“%(title)s” was deleted.") % {"title": deletion.title(removal)}
        offer_undo(request, sentence, f"document:{removal.pk}")
    return pages.to_collection(request, pk)


@require_POST
def retry(request: UserRequest, pk: int) -> HttpResponse:
    document = _get_editable_document(request, pk)
    ingestion.retry(document)
    return _row_or_redirect(request, document)


@require_POST
def cancel(request: UserRequest, pk: int) -> HttpResponse:
    document = _get_editable_document(request, pk)
    ingestion.cancel(document)
    return _row_or_redirect(request, document)


@require_POST
def schedule(request: UserRequest, pk: int) -> HttpResponse:
    """Set how often a web page is fetched again."""
    document = _get_editable_document(request, pk)
    interval = uploads.parse_interval(request.POST.get("interval", ""))
    if not interval or not document.url:
        return HttpResponseBadRequest()
    ingestion.set_schedule(document, interval, request.user)
    return _row_or_redirect(request, document)


def _row_or_redirect(request: UserRequest, document: Document) -> HttpResponse:
    if not request.htmx:
        return pages.to_collection(request, document.collection_id)
    document.refresh_from_db()
    row = listing.DocumentRow(document=document, may_edit=True)
    return render(request, "library/_document_row.html", {"row": row})


@require_GET
@vary_on_headers("HX-Request")
def document_page(request: UserRequest, pk: int) -> HttpResponse:
    """Display a document at the place that the URL names, also beside a chat."""
    document = _get_document(request, pk)
    place = viewer.find_place(document, request.GET)
    query = sanitize_text(request.GET.get("q", "")).strip()[:MAX_QUERY_CHARS]
    hits, has_more = viewer.find_in_document(document, query) if query else ([], False)
    if hits and not request.GET.keys() & {"part", "chunk", "start"}:
        place = hits[0].place
    with_page = Collection.objects.for_user(request.user).with_page()
    is_panel = bool(request.htmx)
    context = {
        "document": document,
        "is_panel": is_panel,
        "view": viewer.build(document, place, parse_id(request.GET.get("at")) or 0),
        "row": listing.DocumentRow(
            document=document,
            may_edit=Document.objects.editable_by(request.user).filter(pk=pk).exists(),
        ),
        "query": query,
        "hits": hits,
        "has_more": has_more,
        "back": _back_url(request),
        "has_collection_page": with_page.filter(pk=document.collection_id).exists(),
    }
    return render(request, "library/document.html" + ("#panel" if is_panel else ""), context)


@require_GET
def transcript(request: UserRequest, pk: int) -> HttpResponse:
    """Return a recording's transcript for a chat, with times that play it."""
    document = _get_document(request, pk)
    view = viewer.build(document, viewer.Place())
    return render(request, "library/_transcript.html", {"view": view})


def _back_url(request: UserRequest) -> str:
    """Return the page of ours that linked here."""
    referrer = urlsplit(request.headers.get("Referer", ""))
    if referrer.netloc != request.get_host() or not BACK.match(referrer.path):
        return ""
    return f"{referrer.path}?{referrer.query}" if referrer.query else referrer.path


@require_safe
def document_file(request: UserRequest, pk: int) -> HttpResponseBase:
    """Return the original; access is checked at every request."""
    document = _get_document(request, pk)
    if document.file is None:
        raise Http404
    is_download = "download" in request.GET
    return files.serve(request, document.file, name=document.name, is_download=is_download)


def _get_document(request: UserRequest, pk: int) -> Document:
    visible = Document.objects.for_user(request.user)
    return get_object_or_404(visible.select_related("collection", "file", "owner"), pk=pk)


def get_editable(request: UserRequest, pk: int) -> Collection:
    """Return a collection that the user can add to; 403 if they can only read it."""
    editable = Collection.objects.editable_by(request.user).with_page().filter(pk=pk).first()
    if editable is not None:
        return editable
    get_object_or_404(Collection.objects.for_user(request.user).with_page(), pk=pk)
    raise PermissionDenied(_("You have read-only access to this collection."))


def _get_editable_document(request: UserRequest, pk: int) -> Document:
    document = Document.objects.editable_by(request.user).filter(pk=pk).first()
    if document is not None:
        return document
    get_object_or_404(Document.objects.for_user(request.user), pk=pk)
    raise PermissionDenied(_("You have read-only access to this collection."))
