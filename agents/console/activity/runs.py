"""Runs and what belongs to them: masked for all but their users, deleted as a whole."""

import asyncio
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from agents import runs
from agents.access import audit, masking
from agents.engine.text import shorten
from agents.models import AgentStep, Approval, HiddenTopic, Run, RunEvent
from agents.models.runs.runs import RunQuerySet
from agents.models.types import AnyUser
from agents.web.presentation.formats.badges import badge_column

from ..admin_classes.read_only import ReadOnlyAdmin
from .deletion import CascadeDeleteAdmin, DeletionContents

MAX_TEXT_CHARS = 80
TONES = {
    **dict.fromkeys(("completed", "done", "approved", "edited"), "green"),
    **dict.fromkeys(("failed", "blocked", "rejected"), "red"),
    **dict.fromkeys(("running", "waiting", "interrupted", "unknown"), "amber"),
}
STATUS = badge_column("status", _("status"), TONES)


def visible_row(row: Any, user: AnyUser) -> Any:
    """Return the row as this user can see it: masked if it is another's."""
    run = row if isinstance(row, Run) else row.run
    if masking.is_own(run, user):
        return row
    hidden = masking.mask_row(row)
    if not isinstance(row, Run):
        hidden.run = masking.mask_row(run)
    elif run.origin is not None:
        hidden.origin = masking.mask_row(run.origin)  # its name is its question
    return hidden


def count_rows(deleted_runs: QuerySet[Run]) -> dict[type[Model], int]:
    """Return how many rows are deleted with these runs, by kind."""
    kinds = (AgentStep, RunEvent, Approval)
    return {kind: kind._default_manager.filter(run__in=deleted_runs).count() for kind in kinds}


def stop_all(rows: RunQuerySet) -> None:
    """Stop the live ones of these runs, in any process."""
    live = list(rows.live())
    if live:
        async_to_sync(_stop_runs)(live)


async def _stop_runs(live: list[Run]) -> None:
    await asyncio.gather(*map(runs.stop, live))


def _rerun_ids(origins: list[int]) -> list[int]:
    """Return all reruns of these, which are deleted with them."""
    run_ids: list[int] = []
    while origins:
        reruns = Run.objects.filter(origin__in=origins).order_by("pk")
        origins = list(reruns.values_list("pk", flat=True))
        run_ids += origins
    return run_ids


class MaskedChangeList(ChangeList):
    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        record_admin: Any = self.model_admin
        self.result_list = [
            record_admin.visible_row(row, request.user) for row in self.result_list
        ]


class RecordAdmin(ReadOnlyAdmin):
    """Records of runs. Viewing another user's is audited."""

    # Masked columns, which users who can't read them must not search.
    personal_search_fields: tuple[str, ...] = ()

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        names = self._unmasked_names(request, self.search_fields)
        return (*names, *(self.personal_search_fields if self._can_see_all(request) else ()))

    def get_list_filter(self, request: HttpRequest) -> list[Any]:
        return self._unmasked_names(request, super().get_list_filter(request))

    def get_sortable_by(self, request: HttpRequest) -> list[Any]:
        """Exclude masked columns: the position of one's own row would reveal others' values."""
        hidden = masking.masked_columns(self.model)
        return [name for name in self.get_list_display(request) if name not in hidden]

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> Any:
        """Search; a search of masked text is audited, without the possibly personal query."""
        if search_term and self.personal_search_fields and self._can_see_all(request):
            audit.record_search(request.user, str(self.opts.model_name), search_term, "admin")
        if search_term and not self.get_search_fields(request):
            return queryset.none(), False
        return super().get_search_results(request, queryset, search_term)

    def _unmasked_names(self, request: HttpRequest, names: Any) -> list[Any]:
        """Return the columns that aren't masked for this user."""
        hidden = () if self._can_see_all(request) else masking.masked_columns(self.model)
        return [name for name in names if name not in hidden]

    def _can_see_all(self, request: HttpRequest) -> bool:
        return request.user.has_perm(masking.UNMASK_PERMISSION)

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        return MaskedChangeList

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        row = super().get_object(request, object_id, from_field)
        if row is None:
            return None
        self.look(row, request.user)
        return self.visible_row(row, request.user)

    def visible_row(self, row: Any, user: AnyUser) -> Any:
        return visible_row(row, user)

    def look(self, row: Any, user: AnyUser) -> None:
        audit.record_view(user, row if isinstance(row, Run) else row.run, "admin")


@admin.register(Run)
class RunAdmin(RecordAdmin, CascadeDeleteAdmin):
    list_display = [
        *("id", "query", "user", "agent_name", "model", STATUS, "stopped_reason"),
        "steps_taken",
        "tool_calls",
        "started_at",
    ]
    list_filter = ["status", "stopped_reason", "agent_name"]
    search_fields = ["=id", "agent_name", "model"]
    personal_search_fields = ("query", "answer")
    date_hierarchy = "started_at"
    list_select_related = ["user", "origin"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        return (
            super().get_queryset(request).exclude(topic__in=HiddenTopic.objects.values("topic"))
        )

    @admin.display(description=_("steps"))
    def steps_taken(self, run: Run) -> int:
        return run.step_count

    def contents(self, run: Run) -> DeletionContents:
        rerun_ids = _rerun_ids([run.pk])
        rows = Run.objects.filter(pk__in=[run.pk, *rerun_ids])
        numbers = {"reruns": rerun_ids} if rerun_ids else {}
        return DeletionContents(counts=count_rows(rows), numbers=numbers, owner=run.user)

    def stop(self, run: Run) -> None:
        stop_all(Run.objects.filter(pk__in=[run.pk, *_rerun_ids([run.pk])]))


@admin.register(AgentStep)
class AgentStepAdmin(RecordAdmin):
    list_display = ["__str__", "run", "kind", STATUS, "action", "started_at", "ended_at"]
    list_filter = ["kind", "status", "action"]
    search_fields = ["action"]
    personal_search_fields = ("thought", "observation")
    list_select_related = ["run"]
    ordering = ["-pk"]


@admin.register(RunEvent)
class RunEventAdmin(RecordAdmin):
    list_display = ["run_id", "seq", "type", "agent", "time"]
    list_filter = ["type"]
    list_select_related = ["run"]
    ordering = ["-pk"]
    show_full_result_count = False


@admin.register(Approval)
class ApprovalAdmin(RecordAdmin):
    list_display = [
        "__str__",
        "called_with",
        "question",
        "agent_name",
        *(badge_column("verdict", _("verdict"), TONES), "decided_by"),
        "asked_at",
        "decided_at",
    ]
    list_filter = ["verdict", "tool"]
    list_select_related = ["run", "decided_by"]
    search_fields = ["tool"]
    personal_search_fields = ("arguments", "run__query")
    ordering = ["-pk"]

    @admin.display(description=_("arguments"))
    def called_with(self, approval: Approval) -> str:
        return shorten(approval.arguments, MAX_TEXT_CHARS)

    @admin.display(description=_("question"))
    def question(self, approval: Approval) -> str:
        return shorten(approval.run.query, MAX_TEXT_CHARS)
