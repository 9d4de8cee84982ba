"""The page that imports MCP servers from the configuration of another program."""

import hashlib
from dataclasses import dataclass, field, replace
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters

from agents.catalog.mcp_servers.server_import import (
    DraftChoices,
    ServerDraft,
    create_servers,
    read_drafts,
)
from agents.db.sentences import translate
from agents.models import McpServer
from agents.models.types import AnyUser
from agents.tools.mcp.config_import import MAX_SERVERS
from agents.tools.mcp.configuration.config import InvalidServerConfig
from agents.tools.mcp.configuration.placeholders import MissingValue
from agents.tools.mcp.process.launch import launch_warnings

from ..admin_classes.pages import render_page

MAX_VALUE_CHARS = 10_000


class ServerImportForm(forms.Form):
    text = forms.CharField(
        label=_("Configuration file"),
        strip=False,
        widget=forms.Textarea(
            attrs={"class": "vLargeTextField code", "rows": 14, "spellcheck": "false"}
        ),
        help_text=_(
            "Paste it as it is in a README or a settings file: Claude, Cursor, VS Code, "
            "Windsurf, Gemini CLI, Codex, Zed, opencode, Cline, LM Studio, Goose and others."
        ),
    )

    def read(self, user: AnyUser, chosen: dict[int, DraftChoices]) -> list[ServerDraft]:
        """Return the drafts; none if the text can't be read, which adds errors."""
        try:
            return read_drafts(self.cleaned_data["text"], user, chosen)
        except InvalidServerConfig as refusal:
            for sentence in refusal.sentences:
                self.add_error("text", translate(sentence))
            return []


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueInput:
    """An input for a missing value."""

    key: str
    value: MissingValue
    entered: str

    @property
    def shown(self) -> str:
        """What the input contains; secrets are never displayed again."""
        return "" if self.value.is_secret else self.entered or self.value.default

    @property
    def is_retyped(self) -> bool:
        return self.value.is_secret and bool(self.entered)


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftView:
    """A server in the preview."""

    number: int
    draft: ServerDraft
    is_picked: bool
    inputs: list[ValueInput] = field(default_factory=list)
    server: McpServer | None = None  # once it is imported

    @property
    def name(self) -> str:
        return self.draft.config.name if self.draft.config else ""

    @property
    def runs(self) -> str:
        config = self.draft.config
        return (config.url or " ".join(config.argv)) if config else ""

    @property
    def transport(self) -> str:
        return self.draft.config.transport if self.draft.config else ""

    @property
    def notes(self) -> list[str]:
        return [translate(note) for note in self.draft.read.notes]

    @property
    def problems(self) -> list[str]:
        return [translate(problem) for problem in self.draft.problems]

    @property
    def warnings(self) -> list[str]:
        config = self.draft.config
        if config is None or config.transport != "stdio" or self.draft.problems:
            return []
        return [translate(warning) for warning in launch_warnings(config)]


@sensitive_post_parameters()
def page(request: HttpRequest, console: Any) -> HttpResponse:
    """Preview what would be created, then create what was picked."""
    if not console.has_add_permission(request):
        raise PermissionDenied
    form = ServerImportForm(request.POST or None)
    views: list[DraftView] = []
    if form.is_valid():
        is_reviewed = request.POST.get("seen") == text_digest(form.cleaned_data["text"])
        chosen = _read_choices(request.POST) if is_reviewed else {}
        drafts = form.read(request.user, chosen)
        views = _draft_views(drafts, request.POST if is_reviewed else None)
        picked = [view for view in views if view.is_picked]
        if "import" in request.POST and views:
            if not is_reviewed:
                messages.warning(request, TEXT_CHANGED)
            elif not picked:
                messages.error(request, NOTHING_PICKED)
            else:
                servers = _import_servers(request, console, picked)
                if len(servers) == len(picked):
                    return redirect("admin:agents_mcpserver_changelist")
                views = [replace(view, server=servers.get(view.number)) for view in views]
    context = {
        "title": _("Import MCP servers"),
        "opts": console.opts,
        "form": form,
        "views": views,
        "can_import": any(view.server is None for view in views),
        "seen": text_digest(form.cleaned_data["text"]) if views else "",
    }
    return render_page(request, "admin/agents/mcpserver/import.html", context)


TEXT_CHANGED = _("The text changed, so nothing was imported. Review the servers again.")
NOTHING_PICKED = _("Select at least one server.")
SOME_FAILED = _("Some servers weren't imported. Fix the errors below.")
VALUES_MISSING = _("{} is disabled. Enter {} on its page, then enable it.")


def _draft_views(drafts: list[ServerDraft], posted: QueryDict | None) -> list[DraftView]:
    return [
        DraftView(
            number=number,
            draft=draft,
            is_picked=draft.is_ready if posted is None else f"pick-{number}" in posted,
            inputs=[
                ValueInput(
                    key=f"value-{number}-{position}",
                    value=value,
                    entered=_sent_text(posted, f"value-{number}-{position}"),
                )
                for position, value in enumerate(draft.read.missing)
            ],
        )
        for number, draft in enumerate(drafts)
    ]


def _read_choices(posted: QueryDict) -> dict[int, DraftChoices]:
    """Return the names and values as they were entered, by the server's number."""
    chosen = {}
    for number in range(MAX_SERVERS):
        if f"name-{number}" not in posted:
            continue
        labels = [key for key in posted if key.startswith(f"label-{number}-")]
        values = {
            _sent_text(posted, key): _sent_text(posted, key.replace("label-", "value-", 1))
            for key in labels
        }
        chosen[number] = DraftChoices(name=_sent_text(posted, f"name-{number}"), values=values)
    return chosen


def _sent_text(posted: QueryDict | None, key: str) -> str:
    return str(posted.get(key, ""))[:MAX_VALUE_CHARS].strip() if posted else ""


def _import_servers(
    request: HttpRequest, console: Any, picked: list[DraftView]
) -> dict[int, McpServer]:
    """Create the servers without problems; return them by their number."""
    ready = [view for view in picked if view.draft.is_ready]
    with transaction.atomic():
        servers = create_servers(view.draft for view in ready)
        for server in servers:
            console.log_addition(request, server, [{"added": {}}])
    if servers:
        names = ", ".join(server.name for server in servers)
        messages.success(request, _("Imported: %(names)s") % {"names": names})
    for view, server in zip(ready, servers, strict=True):
        for sentence in view.warnings:
            messages.warning(request, f"{server.name}: {sentence}")
        if view.draft.still_missing:
            url = reverse("admin:agents_mcpserver_change", args=[server.pk])
            link = format_html('<a href="{}">{}</a>', url, server.name)
            names = ", ".join(view.draft.still_missing)
            messages.warning(request, format_html(str(VALUES_MISSING), link, names))
    if len(ready) < len(picked):
        messages.error(request, SOME_FAILED)
    return {view.number: server for view, server in zip(ready, servers, strict=True)}


def text_digest(text: str) -> str:
    """Return a digest of the reviewed text, whose line ends a browser may change."""
    return hashlib.sha256("\n".join(text.split()).encode(errors="replace")).hexdigest()
