"""Pages of the library and of one collection."""

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.access import audit
from agents.access.requests import UserRequest
from agents.db.sanitize import sanitize_line
from agents.knowledge.ingestion import MAX_PAGES
from agents.models import Collection, Document
from agents.models.sharing.collections import MANAGE_PERMISSION
from agents.web.recently_deleted import offer_undo

from .. import deletion, events, listing, pages, passages, sources, uploads

MAX_COLLECTIONS = 500  # per user


class CollectionForm(forms.Form):
    """A collection's name and description."""

    name = forms.CharField(max_length=80)
    description = forms.CharField(max_length=300, required=False)

    def clean_name(self) -> str:
        name = sanitize_line(self.cleaned_data["name"])
        if not name:
            raise forms.ValidationError(_("Enter a name."))
        return name

    def clean_description(self) -> str:
        return sanitize_line(self.cleaned_data["description"])


@require_GET
def library(request: UserRequest) -> HttpResponse:
    return _render_library(request)


def _render_library(request: UserRequest, status: int = 200, **context: Any) -> HttpResponse:
    rows = listing.collection_rows(request.user)
    library_context: dict[str, Any] = {
        "rows": rows,
        "is_empty": not any(rows.values()),
        "is_pending": any(row.pending for group in rows.values() for row in group),
        "may_manage": request.user.has_perm(MANAGE_PERMISSION),
    }
    template = "library/library.html#collections" if request.htmx else "library/library.html"
    return render(request, template, library_context | context, status=status)


@require_POST
def create(request: UserRequest) -> HttpResponse:
    """Create a collection of the user, or of the installation."""
    form = CollectionForm(request.POST)
    user = request.user
    is_shared = request.POST.get("owner") == "installation"
    if is_shared and not user.has_perm(MANAGE_PERMISSION):
        raise Http404
    if Collection.objects.present().filter(owner=user).count() >= MAX_COLLECTIONS:
        form.add_error(
            None,
            _("You've reached the limit of %(most)d collections. Delete one first.")
            % {"most": MAX_COLLECTIONS},
        )
    if not form.is_valid():
        return _render_library(request, 422, form=form)
    collection = _save(Collection(owner=None if is_shared else user), form, user)
    if collection is None:
        return _render_library(request, 422, form=form)
    return redirect("library:collection", collection.pk)


def _save(collection: Collection, form: CollectionForm, user: User) -> Collection | None:
    """Save the form; without success, it has an error."""
    is_new = collection.pk is None
    old_values = {name: getattr(collection, name) for name in form.cleaned_data}
    for name, value in form.cleaned_data.items():
        setattr(collection, name, value)
    try:
        with transaction.atomic():
            collection.save()
            if collection.owner_id is None and (is_new or old_values != form.cleaned_data):
                action = audit.ADDED if is_new else audit.CHANGED
                audit.record(user, action, collection, name=collection.name)
    except IntegrityError:
        form.add_error("name", _("A collection with this name already exists."))
        return None
    return collection


@require_GET
def collection_page(request: UserRequest, pk: int) -> HttpResponse:
    collection = get_object_or_404(Collection.objects.for_user(request.user).with_page(), pk=pk)
    return render_collection(request, collection)


def render_collection(
    request: UserRequest,
    collection: Collection,
    status: int = 200,
    *,
    invalid_source: sources.SourceForm | None = None,
    **extra_context: Any,
) -> HttpResponse:
    row = listing.collection_row(collection, request.user)
    document_filter = listing.parse_filter(request.GET)
    page = document_filter.page(collection, request.GET.get("page"))
    managed = Collection.objects.managed_by(request.user).filter(pk=collection.pk)
    context = {
        "collection": collection,
        "row": row,
        "project": listing.project_of(collection),
        "filter": document_filter,
        "page": page,
        "rows": [
            listing.DocumentRow(document=document, may_edit=row.may_edit) for document in page
        ],
        "statuses": [(name, label) for name, (label, _q) in listing.STATUSES.items()],
        "sorts": [(name, label) for name, (label, _order) in listing.SORTS.items()],
        "may_manage": managed.exists(),
        "web": uploads.parse_web_source({}),
        "max_pages": MAX_PAGES,
        "intervals": Document.Interval.choices,
        "sitemaps": listing.sitemap_rows(collection),
        "usage": listing.usage(request.user) if row.may_edit else None,
        "here": pages.collection_url(request, collection.pk),
    }
    # htmx doesn't swap error responses, so the status stays 200.
    is_list = request.htmx and request.htmx.target == "documents"
    if is_list:
        return render(request, "library/collection.html#documents", context | extra_context)
    extra_context |= sources.context(collection, request.user, invalid_source)
    if pages.is_console(request):
        context |= admin.site.each_context(request) | {"title": collection.name}
        return render(request, "library/console.html", context | extra_context, status=status)
    return render(request, "library/collection.html", context | extra_context, status=status)


@require_GET
def console_collection(request: UserRequest, pk: int) -> HttpResponse:
    """Display a collection of the installation inside the console, with the same parts."""
    if not request.user.has_perm("agents.view_document"):
        raise PermissionDenied
    rows = Collection.objects.for_user(request.user).library().filter(owner=None)
    return render_collection(request, get_object_or_404(rows, pk=pk))


@require_POST
def edit(request: UserRequest, pk: int) -> HttpResponse:
    """Rename and describe a collection."""
    collection = get_managed(request, pk)
    form = CollectionForm(request.POST)
    if not form.is_valid() or _save(collection, form, request.user) is None:
        collection.refresh_from_db()
        return render_collection(request, collection, 422, form=form)
    events.documents_changed(collection)
    return redirect("library:collection", pk)


@require_POST
def delete(request: UserRequest, pk: int) -> HttpResponse:
    collection = get_managed(request, pk)
    with transaction.atomic():
        deletion.delete_collection(collection, request.user)
        if collection.owner_id is None:
            audit.record(request.user, audit.DELETED, collection, name=collection.name)
    sentence = _("“%(title)s” was deleted.") % {"title": collection.name}
    offer_undo(request, sentence, f"collection:{collection.pk}")
    return redirect("library:list")


@require_http_methods(["GET"])
def search(request: UserRequest) -> HttpResponse:
    """Search the user's library, or one collection of it."""
    results = passages.search_page(request.user, request.GET)
    template = "library/search.html#found" if request.htmx else "library/search.html"
    return render(request, template, {"found": results})


def get_managed(request: UserRequest, pk: int) -> Collection:
    return get_object_or_404(Collection.objects.managed_by(request.user), pk=pk)
