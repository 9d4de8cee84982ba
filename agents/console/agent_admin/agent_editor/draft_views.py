"""Requests of the editor about its draft: save, state, changes, discard, undo."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.urls import URLPattern
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST
from pydantic import BaseModel, Field, ValidationError

from agents.access.requests import signed_in_user
from agents.catalog.language_models import planner_factory
from agents.console.admin_classes.model_admin import ConsoleAdmin
from agents.db.sanitize import parse_id
from agents.models import Agent, AgentDraft
from agents.web.recently_deleted import undo_url

from . import (
    draft_changes,
    draft_state,
    drafts,
    effective_prompt,
    schema_editor,
)
from .drafts import EditedAgent

MAX_ID = 2**63 - 1


class SavedInputs(BaseModel):
    """What the page sends to save: changed inputs, and the revision it has seen."""

    agent: int | None = Field(None, ge=1, le=MAX_ID)
    draft: int | None = Field(None, ge=1, le=MAX_ID)
    base: int = 0
    tab: str = Field("", max_length=64)
    changes: dict[str, list[str]] = {}
    is_forced: bool = Field(False, alias="force")


class DraftAdmin(ConsoleAdmin):
    """The requests of the editor's page about its draft."""

    def get_urls(self) -> list[URLPattern]:
        views = {
            "save": self.draft_save_view,
            "state": self.draft_state_view,
            "changes": self.draft_changes_view,
            "discard": self.draft_discard_view,
            "undo": self.draft_undo_view,
            "prompt": self.draft_prompt_view,
            "schema": self.draft_schema_view,
        }
        urls = [
            self.admin_path(f"drafts/{name}/", view, f"agents_agent_draft_{name}")
            for name, view in views.items()
        ]
        return [*urls, *super().get_urls()]

    @method_decorator(require_POST)
    def draft_save_view(self, request: HttpRequest) -> HttpResponse:
        """Save changed inputs as typed; report conflicts and what is wrong with them."""
        try:
            inputs = SavedInputs.model_validate_json(request.body)
        except ValidationError:
            return JsonResponse(
                {"problem": _("The draft couldn't be read. Reload the page and try again.")},
                status=400,
            )
        agent, draft = self.find_rows(request, inputs.agent, inputs.draft)
        try:
            row = drafts.save(
                agent,
                draft,
                signed_in_user(request),
                inputs.changes,
                base=inputs.base,
                tab=inputs.tab,
                is_forced=inputs.is_forced,
            )
        except drafts.DraftConflict as error:
            edited = drafts.open_draft(agent, error.draft)
            return JsonResponse(draft_state.conflict(error, edited), status=409)
        except drafts.DraftTooLarge:
            return JsonResponse(
                {"problem": _("The draft is too large. Shorten its texts.")}, status=413
            )
        return self._state(request, drafts.open_draft(agent, row))

    @method_decorator(require_GET)
    def draft_state_view(self, request: HttpRequest) -> HttpResponse:
        """Return what is saved, for pages that were open meanwhile."""
        return self._state(request, self._open(request, request.GET))

    @method_decorator(require_GET)
    def draft_changes_view(self, request: HttpRequest) -> HttpResponse:
        """Display what publishing would change, field by field."""
        edited = self._open(request, request.GET)
        context = {
            "edited": edited,
            "changes": list(draft_changes.changes(edited)),
            "errors": draft_state.labelled_errors(edited),
        }
        return render(request, "admin/agents/agent/_draft_changes.html", context)

    @method_decorator(require_POST)
    def draft_discard_view(self, request: HttpRequest) -> HttpResponse:
        """Go back to the published agent."""
        edited = self._open(request, request.POST, writes=True)
        if edited.draft is not None:
            drafts.discard(edited.draft, signed_in_user(request))
            if edited.agent is None:
                url = undo_url([f"agents.AgentDraft:{edited.draft.pk}"], is_console=True)
                messages.success(request, _("Draft discarded."), extra_tags=url)
        return JsonResponse({"isDiscarded": True})

    @method_decorator(require_POST)
    def draft_undo_view(self, request: HttpRequest) -> HttpResponse:
        """Bring back what was discarded or overwritten."""
        edited = self._open(request, request.POST, writes=True)
        if edited.draft is not None:
            drafts.undo(edited.draft, signed_in_user(request))
        return JsonResponse({"isUndone": True})

    @method_decorator(require_GET)
    def draft_prompt_view(self, request: HttpRequest) -> HttpResponse:
        """Display what the model gets from the draft."""
        edited = self._open(request, request.GET)
        prompt_parts = effective_prompt.parts(edited.form, signed_in_user(request))
        name = edited.form.instance.name
        context = {
            "parts": prompt_parts,
            "tokens": effective_prompt.count_tokens(prompt_parts),
            "standard": planner_factory.agent_instructions(Agent(name=name)),
        }
        return render(request, "admin/agents/agent/_effective_prompt.html", context)

    @method_decorator(require_POST)
    def draft_schema_view(self, request: HttpRequest) -> HttpResponse:
        """Check a JSON Schema as it is typed, and a pasted answer against it."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        schema = request.POST.get("schema", "")
        sample = request.POST.get("sample", "")
        return JsonResponse(schema_editor.check(schema, sample))

    def _state(self, request: HttpRequest, edited: EditedAgent) -> HttpResponse:
        state = draft_state.describe(edited, signed_in_user(request))
        return JsonResponse(state | {"errors": draft_state.errors(edited)})

    def _open(self, request: HttpRequest, data: Any, *, writes: bool = False) -> EditedAgent:
        agent = id_or_404(data.get("agent"))
        draft = id_or_404(data.get("draft"))
        return drafts.open_draft(*self.find_rows(request, agent, draft, writes=writes))

    def find_rows(
        self, request: HttpRequest, agent: int | None, draft: int | None, *, writes: bool = True
    ) -> tuple[Agent | None, AgentDraft | None]:
        """Return the rows of these ids; check permission before any lookup."""
        may = self.has_change_permission if writes else self.has_view_permission
        if not (may if agent else self.has_add_permission)(request):
            raise PermissionDenied
        if agent:
            return get_object_or_404(Agent, pk=agent), None
        rows = AgentDraft.objects.filter(agent=None).select_related("editor")
        return None, get_object_or_404(rows, pk=draft) if draft else None


def id_or_404(text: str | None) -> int | None:
    """Return the id; None without one."""
    pk = parse_id(text)
    if text and pk is None:
        raise Http404
    return pk
