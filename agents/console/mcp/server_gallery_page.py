"""The gallery of well-known MCP servers, and the form of one of them."""

import json
from itertools import count
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters

from agents.catalog import mcp_servers
from agents.catalog.mcp_servers.missing_programs import missing_programs
from agents.catalog.mcp_servers.server_gallery import GalleryServer, gallery, verified_on
from agents.models import McpServer

from ..admin_classes.pages import render_page
from .mcp_server_form import ServerForm

CATEGORIES = {
    "basics": _("Basics"),
    "files": _("Files"),
    "web": _("Web"),
    "code": _("Code"),
    "work": _("Work"),
}
MAX_VALUE_CHARS = 2_000
DEFAULTS = {"timeout": "30", "connect_timeout": "60", "max_instances": "10", "enabled": "on"}


class GalleryForm(forms.Form):
    """What a server of the gallery needs: a name, tokens, folders, addresses."""

    def __init__(self, entry: GalleryServer, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.entry = entry
        self.fields["name"] = forms.SlugField(
            label=_("Name"), max_length=40, help_text=_("Prefix of its tool names.")
        )
        for field in entry.fields:
            attrs = {"placeholder": field.example, "spellcheck": "false", "autocomplete": "off"}
            widget = (
                forms.PasswordInput(attrs={**attrs, "autocomplete": "new-password"})
                if field.is_secret
                else forms.TextInput(attrs=attrs)
            )
            self.fields[field.name] = forms.CharField(
                label=field.label,
                help_text=field.help,
                max_length=MAX_VALUE_CHARS,
                initial=field.default,
                widget=widget,
            )

    def server_form(self, user: Any) -> ServerForm:
        """Return the console's own form with these values, which checks them."""
        values = {field.name: self.cleaned_data[field.name] for field in self.entry.fields}
        settings = self.entry.settings(values)
        texts = {
            name: json.dumps(value) if isinstance(value, list | dict) else value
            for name, value in settings.items()
        }
        data = {**DEFAULTS, **texts, "name": self.cleaned_data["name"]}
        form_class: type[ServerForm] = type("Form", (ServerForm,), {"user": user})
        return form_class(data)


def page(request: HttpRequest, console: Any) -> HttpResponse:
    """List the servers by category; those that need nothing more are added at once."""
    if not console.has_add_permission(request):
        raise PermissionDenied
    used = set(McpServer.objects.values_list("name", flat=True))
    may_start = request.user.has_perm(mcp_servers.STDIO_PERMISSION)
    missing = missing_programs(entry.command for entry in gallery().values())
    groups = [
        (label, [entry for entry in gallery().values() if entry.category == key])
        for key, label in CATEGORIES.items()
    ]
    context = {
        "title": _("Add an MCP server"),
        "opts": console.opts,
        "groups": groups,
        "used": used,
        "missing": missing,
        "may_start": may_start,
        "verified": verified_on(),
    }
    return render_page(request, "admin/agents/mcpserver/gallery.html", context)


@sensitive_post_parameters()
def entry_page(request: HttpRequest, key: str, console: Any) -> HttpResponse:
    """Display the form of one server, and create it."""
    if not console.has_add_permission(request):
        raise PermissionDenied
    entry = gallery().get(key)
    if entry is None:
        raise Http404
    name = _free_name(key)
    is_posted = request.method == "POST"
    # The button of a card sends nothing: the server is added under its own name.
    data = {"name": name, **request.POST.dict()} if is_posted else None
    form = GalleryForm(entry, data, initial={"name": name})
    if is_posted and form.is_valid():
        server_form = form.server_form(request.user)
        if server_form.is_valid():
            with transaction.atomic():
                server: McpServer = server_form.save()
                console.log_addition(request, server, [{"added": {}}])
            return redirect("admin:agents_mcpserver_setup", server.pk)
        for name, errors in server_form.errors.items():
            for error in errors:
                form.add_error("name" if name == "name" else None, str(error))
    context = {
        "title": entry.title,
        "opts": console.opts,
        "entry": entry,
        "form": form,
        "missing": missing_programs([entry.command]),
        "may_start": entry.transport == "http"
        or request.user.has_perm(mcp_servers.STDIO_PERMISSION),
        "verified": verified_on(),
    }
    return render_page(request, "admin/agents/mcpserver/gallery_entry.html", context)


def _free_name(key: str) -> str:
    """Return the entry's name, with a number if a server has it already."""
    used = set(McpServer.objects.values_list("name", flat=True))
    names = (key if n == 1 else f"{key}-{n}" for n in count(1))
    return next(name for name in names if name not in used)
