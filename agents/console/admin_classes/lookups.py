"""Restricts console lists to the filters they declare.

Django filters a list by any column named in the URL, so `?password__regex=^a` would reveal it
letter by letter. The console's site applies this to every list it registers.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.exceptions import (
    DisallowedModelAdminLookup,
    DisallowedModelAdminToField,
)
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import get_fields_from_path
from django.contrib.admin.views.autocomplete import AutocompleteJsonView
from django.contrib.admin.views.main import (
    ERROR_FLAG,
    IGNORED_PARAMS,
    PAGE_VAR,
    SEARCH_VAR,
    ChangeList,
)
from django.core.exceptions import BadRequest, PermissionDenied, ValidationError
from django.db import DataError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

TEMPLATE = "admin/lookup_refused.html"
INVALID_VALUE = gettext_lazy("The URL contains a value that this list can't filter by.")
MAX_SEARCH_CHARS = 200
# Values that a filter or the database rejects, which depends on the database.
INVALID_VALUE_ERRORS = (
    IncorrectLookupParameters,
    ValidationError,
    DataError,
    ValueError,
    OverflowError,
)
RESERVED_PARAMS = {*IGNORED_PARAMS, PAGE_VAR, ERROR_FLAG}
DATE_PARTS = ("year", "month", "day")


class LookupRefused(BadRequest):
    """Raised when the URL asks for an undeclared lookup; the message says which."""


class DeclaredChangeList(ChangeList):
    """Sorts only by columns declared as sortable, whatever `o=` says."""

    def get_ordering_field(self, field_name: Callable[..., Any] | str) -> Any:
        if self.sortable_by is not None and field_name not in self.sortable_by:
            return None
        return super().get_ordering_field(field_name)


if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Any]
else:
    _ModelAdmin = object  # a mixin for ModelAdmin classes


class DeclaredLookups(_ModelAdmin):
    """A ModelAdmin mixin that filters only by `list_filter` and `linked_lookups`."""

    # Exact lookups that pages of the console link to, such as ("run__id__exact",).
    linked_lookups: tuple[str, ...] = ()

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        return lookup in declared_lookups(self, request)

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        changelist = super().get_changelist(request, **options)
        return type(changelist.__name__, (DeclaredChangeList, changelist), {})

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        # No database accepts NUL everywhere; the search box handles it itself.
        for name, values in request.GET.lists():
            if name != SEARCH_VAR and any("\0" in text for text in [name, *values]):
                raise LookupRefused(INVALID_VALUE)
        try:
            return super().get_changelist_instance(request)
        except DisallowedModelAdminLookup as error:
            names = sorted(
                request.GET.keys() - RESERVED_PARAMS - declared_lookups(self, request)
            )
            raise LookupRefused(_no_filter_message(names)) from error
        except DisallowedModelAdminToField as error:
            raise LookupRefused(_no_filter_message(["_to_field"])) from error
        except INVALID_VALUE_ERRORS as error:
            if not request.GET:  # the URL can't be the reason
                raise
            raise LookupRefused(INVALID_VALUE) from error

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        try:
            return super().changelist_view(request, extra_context)
        except LookupRefused as refusal:
            context = {
                **self.admin_site.each_context(request),
                "title": _("Invalid filter"),
                "refusal": str(refusal),
                "opts": self.opts,
            }
            return render(request, TEMPLATE, context, status=400)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Search without NUL, which PostgreSQL rejects, and with limited length."""
        term = search_term.replace("\0", "")[:MAX_SEARCH_CHARS]
        return super().get_search_results(request, queryset, term)


def restrict_lookups(admin_class: type[admin.ModelAdmin]) -> type[admin.ModelAdmin]:
    """Return the ModelAdmin with restricted lookups."""
    if issubclass(admin_class, DeclaredLookups):
        return admin_class
    return type(
        admin_class.__name__,
        (DeclaredLookups, admin_class),
        {"__module__": admin_class.__module__},
    )


def declared_lookups(model_admin: Any, request: HttpRequest) -> set[str]:
    """Return the exact lookups this list's URL can use."""
    names = {*model_admin.linked_lookups}
    if date_field := model_admin.date_hierarchy:
        names |= {f"{date_field}__{unit}" for unit in DATE_PARTS}
    model = model_admin.model
    for entry in model_admin.get_list_filter(request):
        if isinstance(entry, type):
            list_filter = entry(request, {}, model, model_admin)
        else:
            is_pair = isinstance(entry, tuple | list)
            path, create = entry if is_pair else (entry, admin.FieldListFilter.create)
            field = get_fields_from_path(model, path)[-1]
            list_filter = create(field, request, {}, model, model_admin, field_path=path)
        names |= set(list_filter.expected_parameters())
    return names


def _no_filter_message(names: list[str]) -> str:
    listed = ", ".join(name[:80] for name in names[:3])
    return _("This list has no filter named %(names)s.") % {"names": listed}


class DeclaredAutocomplete(AutocompleteJsonView):
    """Suggests rows only for fields with such a box, to users who can fill it in."""

    def process_request(self, request: HttpRequest) -> Any:
        term, model_admin, source, to_field = super().process_request(request)
        site: Any = self.admin_site
        source_admin = site._registry.get(source.model)
        if source_admin is None:
            raise PermissionDenied
        if source.name not in source_admin.get_autocomplete_fields(request):
            raise PermissionDenied
        may_add = source_admin.has_add_permission(request)
        if not may_add and not source_admin.has_change_permission(request):
            raise PermissionDenied
        return term, model_admin, source, to_field
