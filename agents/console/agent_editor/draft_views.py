"""Requests of the editor about its draft: save, state, changes, discard, undo."""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST
from pydantic import BaseModel, Field, ValidationError

from agents.access.requests import signed_in_user
from agents.catalog import planner_factory
from agents.models import Agent, AgentDraft

from ..model_admin import ConsoleAdmin
from . import draft_changes, draft_state, drafts, effective_prompt, schema_editor
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
        own = [
            path(
                f"drafts/{name}/",
                self.admin_site.admin_view(view),
                name=f"agents_agent_draft_{name}",
            )
            for name, view in views.items()
        ]
        return [*own, *super().get_urls()]

    @method_decorator(require_POST)
    def draft_save_view(self, request: HttpRequest) -> HttpResponse:
        """Save changed inputs as typed; report conflicts and what is wrong with them."""
        try:
            sent = SavedInputs.model_validate_json(request.body)
        except ValidationError:
            return JsonResponse({"problem": _("The draft couldn't be read.")}, status=400)
        agent, draft = self.find_rows(request, sent.agent, sent.draft)
        user = signed_in_user(request)
        try:
            row = drafts.save(
                *(agent, draft, user, sent.changes),
                base=sent.base,
                tab=sent.tab,
                is_forced=sent.is_forced,
            )
        except drafts.DraftConflict as error:
            edited = drafts.open_draft(agent, error.draft)
            return JsonResponse(draft_state.conflict(error, edited), status=409)
        except drafts.DraftTooLarge:
            return JsonResponse({"problem": _("The draft is too large.")}, status=413)
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
        return JsonResponse({"isDiscarded": True})

    @method_decorator(require_POST)
    def draft_undo_view(self, request: HttpRequest) -> HttpResponse:
        """Bring back what was discarded or overwritten."""
        edited = self._open(request, request.POST, writes=True)
        if edited.draft is not None:
            drafts.undo(edited.draft, signed_in_user(request))
        if request.POST.get("next") == "list":
            return redirect("admin:agents_agent_changelist")
        return JsonResponse({"isUndone": True})

    @method_decorator(require_GET)
    def draft_prompt_view(self, request: HttpRequest) -> HttpResponse:
        """Display what the model gets from the draft."""
        edited = self._open(request, request.GET)
        found = effective_prompt.parts(edited.form, signed_in_user(request))
        name = edited.form.instance.name
        context = {
            "parts": found,
            "tokens": effective_prompt.count_tokens(found),
            "standard": planner_factory.agent_instructions(Agent(name=name)),
        }
        return render(request, "admin/agents/agent/_effective_prompt.html", context)

    @method_decorator(require_POST)
    def draft_schema_view(self, request: HttpRequest) -> HttpResponse:
        """Check a JSON Schema as it is typed, and a pasted answer against it."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        sent = [request.POST.get(name, "") for name in ("schema", "sample")]
        return JsonResponse(schema_editor.check(*sent))

    def _state(self, request: HttpRequest, edited: EditedAgent) -> HttpResponse:
        state = draft_state.describe(edited, signed_in_user(request))
        return JsonResponse(state | {"errors": draft_state.errors(edited)})

    def _open(self, request: HttpRequest, sent: Any, *, writes: bool = False) -> EditedAgent:
        pks = [parse_id(sent.get(name)) for name in ("agent", "draft")]
        return drafts.open_draft(*self.find_rows(request, *pks, writes=writes))

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


def parse_id(text: str | None) -> int | None:
    if not text:
        return None
    is_number = text.isascii() and text.isdigit() and len(text) < 20
    if not is_number or int(text) > MAX_ID:
        raise Http404
    return int(text)
