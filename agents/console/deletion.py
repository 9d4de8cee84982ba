"""Runs and sessions are deleted as a whole; the rows in them are never deleted alone."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.contrib import admin
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse

from agents.access import audit

from .read_only import ReadOnlyAdmin


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionContents:
    """What goes with a row: how many rows of each kind, and which runs."""

    counts: Mapping[type[Model], int]
    numbers: Mapping[str, list[int]] = field(default_factory=dict)
    owner: Any = None

    def facts(self) -> dict[str, Any]:
        counted = {f"{kind._meta.model_name}_count": n for kind, n in self.counts.items()}
        whose = {"who": audit.person(self.owner)} if self.owner else {}
        return {**whose, **counted, **self.numbers}


class CascadeDeleteAdmin(ReadOnlyAdmin):
    """Rows that can be deleted with everything in them, by a page or by an action.

    The audit entry says whose it was and how much went with it. It holds none of the words:
    it could not be erased with the person who said them.
    """

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_delete_permission(self, request, obj)

    def contents(self, row: Any) -> DeletionContents:
        raise NotImplementedError

    def shown(self, row: Any, user: Any) -> Any:
        """The row as this person may see it."""
        return row

    def stop(self, row: Any) -> None:
        """End what still goes on in it, before it is deleted."""

    def remove(self, row: Any) -> None:
        row.delete()

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Each row by its name, and how much goes with all of them."""
        rows = list(objs)
        counts = {str(self.opts.verbose_name_plural): len(rows)}
        for row in rows:
            for kind, count in self.contents(row).counts.items():
                name = str(kind._meta.verbose_name_plural)
                counts[name] = counts.get(name, 0) + count
        counts = {name: count for name, count in counts.items() if count}
        told = [str(self.shown(row, request.user)) for row in rows]
        lacking = set() if self.has_delete_permission(request) else {self.opts.verbose_name}
        return told, counts, lacking, []

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        """Not in one transaction: what still runs is stopped by its owner, who has to write."""
        return self._delete_view(request, object_id, extra_context)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self._delete(request, [obj.pk])

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        self._delete(request, list(queryset.values_list("pk", flat=True)))

    def log_deletions(self, request: HttpRequest, queryset: Any) -> None:
        """Entries are written with each deletion; Django's own would keep words of people."""

    def _delete(self, request: HttpRequest, numbers: Iterable[int]) -> None:
        rows = list(self.model._default_manager.filter(pk__in=numbers).order_by("pk"))
        for row in rows:
            self.stop(row)
            with transaction.atomic():
                told = self.contents(row).facts() | {"deleted_together": len(rows)}
                told |= {"name": str(row)} if self.tells_values else {}
                audit.record(request.user, audit.DELETED, row, **told)
                self.remove(row)
