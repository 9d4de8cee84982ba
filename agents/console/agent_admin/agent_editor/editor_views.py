"""The page of the editor, and publishing its draft as a version."""

from types import SimpleNamespace
from typing import Any

from csp.constants import SELF
from csp.decorators import csp_update
from django.contrib import messages
from django.contrib.admin.options import IS_POPUP_VAR
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _

from agents.access.requests import signed_in_user
from agents.console.admin_classes.model_admin import seen_digests, with_conflict_check
from agents.db.sanitize import parse_id
from agents.models import Agent

from ..agent_form import AgentForm
from ..agent_templates import AGENT_TEMPLATES, TEMPLATES_BY_KEY
from . import draft_state, drafts, form_values, page
from .draft_views import DraftAdmin, id_or_404
from .drafts import EditedAgent

REVISION_INPUT = "_revision"
DRAFT_INPUT = "_draft"


class EditorAdmin(DraftAdmin):
    """The editor instead of Django's form; submitting it publishes."""

    def add_view(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        """Ask for a template first."""
        chosen = {"start", "draft", IS_POPUP_VAR} & request.GET.keys()
        is_asked = request.method == "GET" and not chosen
        if not is_asked or not self.has_add_permission(request):
            return super().add_view(request, *args, **options)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": _("New agent"),
            "starters": AGENT_TEMPLATES,
            "unpublished": drafts.unpublished(),
        }
        return TemplateResponse(request, "admin/agents/agent/starters.html", context)

    # The test chat is a page of its own, with the product's run view.
    @method_decorator(csp_update({"frame-src": [SELF]}))
    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: Any = None,
    ) -> HttpResponse:
        """Display the draft; a submitted form is published."""
        may = self.has_view_or_change_permission if object_id else self.has_add_permission
        if not may(request):
            raise PermissionDenied
        agent = self.get_object(request, object_id) if object_id else None
        if object_id and agent is None:
            model_admin: Any = self  # the type stubs lack the method
            response: HttpResponse = model_admin._get_obj_does_not_exist_redirect(
                request, self.opts, object_id
            )
            return response
        if request.method == "POST":
            return self._publish(request, agent)
        edited = self._edited(request, agent)
        return self._render(request, edited, edited.form)

    def _edited(self, request: HttpRequest, agent: Agent | None) -> EditedAgent:
        """Return the draft that the address names, or a new one from a template."""
        draft_id = request.POST.get(DRAFT_INPUT) or request.GET.get("draft")
        draft = id_or_404(draft_id) if agent is None else None
        if draft:
            return drafts.open_draft(*self.find_rows(request, None, draft))
        edited = drafts.open_draft(agent)
        template = TEMPLATES_BY_KEY.get(request.GET.get("start", "")) if not agent else None
        if template is None:
            return edited
        values = form_values.of_initial(None, template.initial())
        return EditedAgent(agent=None, draft=None, published={}, changes=values)

    def _publish(self, request: HttpRequest, agent: Agent | None) -> HttpResponse:
        """Validate the form and save it as a version; otherwise keep it as the draft."""
        may = self.has_change_permission if agent else self.has_add_permission
        if not may(request):
            raise PermissionDenied
        edited = self._edited(request, agent)
        draft = edited.draft
        revision = parse_id(request.POST.get(REVISION_INPUT))
        if draft and revision is not None and revision < draft.revision:
            editor = draft.editor.get_username() if draft.editor else _("Another user")
            sentence = _("%(who)s changed this draft meanwhile. Review it and publish again.")
            problem = sentence % {"who": editor}
            return self._render(request, edited, edited.form, problem=problem)
        form_class = with_conflict_check(AgentForm, request) if agent else AgentForm
        absent: Any = dict.fromkeys(edited.published, [])  # the page leaves out empty settings
        values = absent | form_values.of_request(request.POST)
        note = {"note": request.POST.getlist("note")}
        form = form_values.bind(agent, values | note, form_class)
        # Builds the rows of all tools before the transaction: other writers wait for its end.
        form["given"].value()
        with transaction.atomic():
            if form.is_valid():
                is_new = agent is None
                saved: Agent = form.save(commit=False)
                self.save_model(request, saved, form, not is_new)
                self.save_related(request, form, [], not is_new)
                message = self.construct_change_message(request, form, [], is_new)
                (self.log_addition if is_new else self.log_change)(request, saved, message)
                drafts.finish(saved, draft)
                if IS_POPUP_VAR in request.POST:
                    return self.response_add(request, saved)
                saved.refresh_from_db(fields=["version"])
                sentence = _("Published. Version %(number)d of %(name)s is live.")
                params = {"number": saved.version, "name": saved.name}
                messages.success(request, sentence % params)
                return redirect("admin:agents_agent_change", saved.pk)
        # A page without scripts hasn't saved what can't be published.
        changes = form_values.differences(edited.form, edited.values, values)
        if changes and (agent or draft):
            drafts.save(agent, draft, signed_in_user(request), changes, is_forced=True)
        return self._render(request, edited, form, has_errors=True)

    def _render(
        self,
        request: HttpRequest,
        edited: EditedAgent,
        form: Any,
        *,
        has_errors: bool = False,
        problem: str = "",
    ) -> HttpResponse:
        agent = edited.agent
        may_change = (
            self.has_change_permission(request) if agent else self.has_add_permission(request)
        )
        context = {
            **self.admin_site.each_context(request),
            **page.context(edited, form, request),
            "opts": self.opts,
            "title": agent.name if agent else _("New agent"),
            "original": agent,
            "add": agent is None,
            "adminform": SimpleNamespace(form=form),
            "seen": seen_digests(agent, form) if agent else "",
            "state": draft_state.describe(edited, signed_in_user(request)),
            "may_change": may_change,
            "may_add": self.has_add_permission(request),
            "may_delete": agent is not None and self.has_delete_permission(request, agent),
            "has_errors": has_errors,
            "problem": problem,
            "is_popup": IS_POPUP_VAR in request.GET or IS_POPUP_VAR in request.POST,
        }
        return TemplateResponse(request, "admin/agents/agent/editor.html", context)
