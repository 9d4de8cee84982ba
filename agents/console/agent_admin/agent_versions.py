"""An agent's versions: what changed from one to the next, and how to restore one."""

from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern
from django.utils.decorators import method_decorator
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from agents.access.requests import signed_in_user
from agents.catalog import agent_versions
from agents.models import Agent, AgentVersion

from ..admin_classes.model_admin import ConsoleAdmin
from ..admin_classes.pages import render_page
from . import agent_changes
from .agent_editor import drafts

MAX_VERSIONS = 100


@dataclass(frozen=True)
class VersionEntry:
    """A version in the list, with its predecessor."""

    version: AgentVersion
    previous: AgentVersion | None

    @cached_property
    def changed_labels(self) -> list[str]:
        """The labels of its changed fields."""
        if self.previous is None:
            return []
        different = agent_changes.changed_names(self.previous.snapshot, self.version.snapshot)
        return [agent_changes.label(name) for name in different]


class VersionHistoryAdmin(ConsoleAdmin):
    """Pages for an agent's versions, and for copying an agent."""

    def get_urls(self) -> list[URLPattern]:
        version = "<int:pk>/history/<int:number>/"
        return [
            self.admin_path(version, self.version_view, "agents_agent_version"),
            self.admin_path(f"{version}restore/", self.restore_view, "agents_agent_restore"),
            self.admin_path("<int:pk>/clone/", self.clone_view, "agents_agent_clone"),
            *super().get_urls(),
        ]

    def save_model(self, request: Any, obj: Agent, form: Any, change: bool) -> None:
        """Save a version of the agent as it was before its first change."""
        if change and not obj.version:
            agent_versions.save(obj, None)
        super().save_model(request, obj, form, change)

    def save_related(self, request: Any, form: Any, formsets: Any, change: bool) -> None:
        """Save a version last, also for changes made in the list."""
        super().save_related(request, form, formsets, change)
        agent_versions.save(form.instance, request.user, form.cleaned_data.get("note", ""))

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        """List all versions, newest first."""
        self._require_permission(self.has_view_permission(request))
        agent = self.get_object(request, unquote(object_id))
        if agent is None:
            raise Http404
        versions = list(agent.versions.select_related("author")[: MAX_VERSIONS + 1])
        pairs = zip_longest(versions, versions[1:])
        context = {
            "title": _("Versions of %(name)s") % {"name": agent.name},
            "entries": [VersionEntry(*pair) for pair in pairs][:MAX_VERSIONS],
            "is_cut": len(versions) > MAX_VERSIONS,
        }
        return self._render_page(request, agent, "history.html", context)

    @method_decorator(require_GET)
    def version_view(self, request: HttpRequest, pk: int, number: int) -> HttpResponse:
        """Display one version: its changes, or the differences to the current one."""
        self._require_permission(self.has_view_permission(request))
        agent = get_object_or_404(Agent, pk=pk)
        version = get_object_or_404(agent.versions.select_related("author"), number=number)
        is_now = "now" in request.GET and version.number != agent.version
        older = version if is_now else agent.versions.filter(number=number - 1).first()
        newer = agent.versions.filter(number=agent.version).first() if is_now else version
        context = {
            "title": _("%(name)s, version %(number)d") % {"name": agent.name, "number": number},
            "version": version,
            "left": older,
            "right": newer,
            "is_now": is_now,
            "changes": older
            and newer
            and list(agent_changes.changes(older.snapshot, newer.snapshot)),
            "whole": agent_changes.field_texts(version.snapshot),
            "may_restore": self.has_change_permission(request),
        }
        return self._render_page(request, agent, "version.html", context)

    @method_decorator(require_POST)
    def restore_view(self, request: HttpRequest, pk: int, number: int) -> HttpResponse:
        """Put an old version into the draft; users get it when it is published."""
        self._require_permission(self.has_change_permission(request))
        agent = get_object_or_404(Agent, pk=pk)
        version = get_object_or_404(agent.versions.select_related("agent"), number=number)
        values, troubles = drafts.of_version(version)
        drafts.replace(agent, signed_in_user(request), values)
        for trouble in troubles:
            messages.warning(request, trouble)
        sentence = _("Version %(number)d is in the draft now. Publish it to make it live.")
        messages.success(request, sentence % {"number": number})
        return redirect("admin:agents_agent_change", agent.pk)

    @method_decorator(require_POST)
    def clone_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        self._require_permission(
            self.has_add_permission(request) and self.has_view_permission(request)
        )
        agent = get_object_or_404(Agent, pk=pk)
        with transaction.atomic():
            clone = agent_versions.clone(agent, signed_in_user(request))
            self.log_addition(request, clone, [{"added": {}}])
        sentence = _("This is a copy of %(name)s. It's disabled until you enable it.")
        messages.success(request, sentence % {"name": agent.name})
        return redirect("admin:agents_agent_change", clone.pk)

    def _require_permission(self, may: bool) -> None:
        """Check permission before any lookup, so that nothing is revealed."""
        if not may:
            raise PermissionDenied

    def _render_page(
        self, request: HttpRequest, agent: Agent, name: str, context: dict[str, Any]
    ) -> HttpResponse:
        context |= {"opts": self.opts, "agent": agent}
        return render_page(request, f"admin/agents/agent/{name}", context)
