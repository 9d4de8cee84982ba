"""Actions on an MCP server and its tools: test, pause, enable and accept."""

from collections.abc import Iterator
from functools import partial

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from agents.access import audit
from agents.catalog import mcp_servers
from agents.models import McpServer, ToolRegistration
from agents.runs.engine_messages import translate
from agents.tools.mcp.config import ServerConfig
from agents.tools.mcp.launch import launch_warnings

from . import circuit_breakers
from .mcp_server_form import ServerForm
from .model_admin import ConsoleAdmin


@require_POST
def pause(request: HttpRequest, console: ConsoleAdmin, pk: int) -> HttpResponse:
    """Pause or resume a server; its tools can't be called meanwhile."""
    server = get_object_or_404(McpServer, pk=pk)
    if not console.has_change_permission(request, server):
        raise PermissionDenied
    before, server.enabled = server.enabled, request.POST.get("state") == "on"
    vars(request)["changes"] = {"enabled": [before, server.enabled]}
    with transaction.atomic():
        server.save(update_fields=["enabled"])
        console.log_change(request, server, [{"changed": {"fields": ["enabled"]}}])
        disconnect_on_commit(server.name)
    paused, resumed = _("%(name)s is paused."), _("%(name)s is in use again.")
    sentence = resumed if server.enabled else paused
    messages.success(request, sentence % {"name": server.name})
    return redirect("admin:agents_mcpserver_changelist")


@require_POST
def test_connection(request: HttpRequest, console: ConsoleAdmin, pk: int) -> HttpResponse:
    """Connect once, list the tools, and report the result."""
    server = get_object_or_404(McpServer, pk=pk)
    if not console.has_change_permission(request, server):
        raise PermissionDenied
    result = async_to_sync(mcp_servers.sync)(server, request.user)
    details = {"name": server.name, "state": str(result.health.state)}
    audit.record(request.user, audit.SERVER_TESTED, server, **details)
    _add_messages(request, result)
    if request.POST.get("back") == "list":
        return redirect("admin:agents_mcpserver_changelist")
    return redirect(_change_url(server.pk))


def _add_messages(request: HttpRequest, result: mcp_servers.SyncResult) -> None:
    health = result.health
    if health.state != "ready":
        messages.error(request, health.error)
        return
    names = ", ".join(tool.name for tool in health.tools)
    messages.success(request, _("Connected. Tools: %(names)s") % {"names": names or "—"})
    if result.changed:
        changed = _("Changed, and blocked until you accept the changes:")
        messages.warning(request, f"{changed} {', '.join(result.changed)}")
    if result.gone:
        gone = _("Removed from the server:")
        messages.warning(request, f"{gone} {', '.join(result.gone)}")


@require_POST
def try_out(request: HttpRequest, console: ConsoleAdmin, pk: int | None = None) -> HttpResponse:
    """Connect to the server in the form, without saving it."""
    server = get_object_or_404(McpServer, pk=pk) if pk else None
    may_change = server is not None and console.has_change_permission(request, server)
    if not (may_change if server else console.has_add_permission(request)):
        raise PermissionDenied
    form = console.get_form(request, server, change=may_change)(request.POST, instance=server)
    with transaction.atomic():  # the form may lock rows
        is_valid = form.is_valid()
    if is_valid:
        details = {"name": form.wanted.name, "is_saved": False}
        audit.record(request.user, audit.SERVER_TESTED, server or "mcpserver", **details)
    probe = async_to_sync(mcp_servers.probe)
    context = {
        **console.admin_site.each_context(request),
        "title": _("Test without saving"),
        "opts": console.opts,
        "problems": list(_form_problems(form)),
        "health": probe(form.wanted, request.user) if is_valid else None,
        "warnings": [translate(warning) for warning in _launch_warnings(form.wanted)]
        if is_valid
        else [],
    }
    return render(request, "admin/agents/mcpserver/try.html", context)


@require_POST
def switch_tool(request: HttpRequest, console: ConsoleAdmin, pk: int) -> HttpResponse:
    """Enable or disable one tool of a server, for all agents."""
    row = get_object_or_404(ToolRegistration, pk=pk, server__isnull=False)
    if not request.user.has_perm("agents.change_toolregistration"):
        raise PermissionDenied
    row.enabled = request.POST.get("enabled") == "on"
    with transaction.atomic():
        row.save(update_fields=["enabled"])
        console.log_change(request, row, [{"changed": {"fields": ["enabled"]}}])
    circuit_breakers.reset_tool(row.name)
    on, off = _("Enabled: %(name)s"), _("Disabled: %(name)s")
    sentence = on if row.enabled else off
    messages.success(request, sentence % {"name": row.name})
    return redirect(f"{_change_url(row.server_id)}#tool-{row.pk}")


@require_POST
def accept_tool(request: HttpRequest, console: ConsoleAdmin, pk: int) -> HttpResponse:
    """Accept the displayed change, and no later one."""
    row = get_object_or_404(ToolRegistration, pk=pk, server__isnull=False)
    if not request.user.has_perm("agents.change_toolregistration"):
        raise PermissionDenied
    try:
        with transaction.atomic():
            mcp_servers.accept(row, request.POST.get("seen", ""))
            console.keep(request, audit.TOOL_ACCEPTED, row)
    except mcp_servers.DefinitionChanged:
        messages.error(request, _("The definition changed again. Review the new changes."))
    else:
        messages.success(request, _("%(name)s accepted.") % {"name": row.name})
    return redirect(_change_url(row.server_id))


def disconnect_on_commit(*names: str) -> None:
    """Disconnect after the commit: a run that connects earlier would use the old settings."""
    for name in names:
        transaction.on_commit(partial(mcp_servers.disconnect, name))


def _form_problems(form: ServerForm) -> Iterator[tuple[str, list[str]]]:
    """Yield problems with their field's label."""
    for name, errors in form.errors.items():
        yield (
            str(form.fields[name].label) if name in form.fields else "",
            list(map(str, errors)),
        )


def _launch_warnings(config: ServerConfig) -> list[str]:
    return launch_warnings(config) if config.transport == "stdio" else []


def _change_url(server: int | None) -> str:
    return reverse("admin:agents_mcpserver_change", args=[server])
