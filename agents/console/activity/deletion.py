"""Deletes runs and chats as a whole; their rows are never deleted alone."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse

from agents.access import audit
from agents.models.types import AnyUser

from ..admin_classes.read_only import ReadOnlyAdmin


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionContents:
    """What is deleted with a row: counts by kind, and run ids."""

    counts: Mapping[type[Model], int]
    numbers: Mapping[str, list[int]] = field(default_factory=dict)
    owner: User | None = None

    def facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"who": audit.person(self.owner)} if self.owner else {}
        facts |= {f"{kind._meta.model_name}_count": n for kind, n in self.counts.items()}
        return {**facts, **self.numbers}


class CascadeDeleteAdmin(ReadOnlyAdmin):
    """Rows that can be deleted with everything in them, by a page or an action.

    The audit entry has the owner and the counts. It has none of the text, which couldn't be
    erased with its author.
    """

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_delete_permission(self, request, obj)

    def contents(self, row: Any) -> DeletionContents:
        raise NotImplementedError

    def visible_row(self, row: Any, user: AnyUser) -> Any:
        """Return the row as this user can see it."""
        return row

    def stop(self, row: Any) -> None:
        """Stop what is still running in it, before it is deleted."""

    def remove(self, row: Any) -> None:
        """Delete it, in batches if there may be much in it: other writers wait for each."""
        row.delete()

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Return each row by name, and the total that is deleted with them."""
        rows = list(objs)
        counts = {str(self.opts.verbose_name_plural): len(rows)}
        for row in rows:
            for kind, count in self.contents(row).counts.items():
                name = str(kind._meta.verbose_name_plural)
                counts[name] = counts.get(name, 0) + count
        counts = {name: count for name, count in counts.items() if count}
        labels = [str(self.visible_row(row, request.user)) for row in rows]
        lacking = set() if self.has_delete_permission(request) else {self.opts.verbose_name}
        return labels, counts, lacking, []

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        """Delete without a transaction: the owner of a live run must be able to end it."""
        return self._delete_view(request, object_id, extra_context)  # type: ignore[attr-defined]

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self._delete(request, [obj.pk])

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        self._delete(request, list(queryset.values_list("pk", flat=True)))

    def log_deletions(self, request: HttpRequest, queryset: Any) -> list[LogEntry]:
        """Skip Django's log, which would keep users' text; each deletion is audited."""
        return []

    def _delete(self, request: HttpRequest, numbers: Iterable[int]) -> None:
        rows = list(self.model._default_manager.filter(pk__in=numbers).order_by("pk"))
        for row in rows:
            self.stop(row)
            details = self.contents(row).facts() | {"deleted_together": len(rows)}
            details |= {"name": str(row)} if self.tells_values else {}
            audit.record(request.user, audit.DELETED, row, **details)
            self.remove(row)
