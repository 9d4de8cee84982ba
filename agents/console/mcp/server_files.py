"""The files of an MCP server on this machine: their size, and the page that deletes them."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.defaultfilters import filesizeformat
from django.template.loader import render_to_string
from django.utils.formats import number_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from agents.access import audit
from agents.catalog import mcp_servers
from agents.models import McpServer

from ..admin_classes.model_admin import ConsoleAdmin
from ..admin_classes.pages import render_page

HELP = _(
    "The server's home, working and temporary folders. They stay when the server stops, "
    "restarts or is renamed. Relative paths start in the working folder."
)


def render_size(server: McpServer) -> SafeString:
    """Return the size of its home, working and temporary folder, and a link to delete."""
    context = {**_files_context(server), "help": HELP}
    return render_to_string("admin/agents/mcpserver/_files.html", context)


def page(request: HttpRequest, console: ConsoleAdmin, pk: int) -> HttpResponse:
    """Ask for confirmation, then delete the server's files."""
    server = get_object_or_404(McpServer, pk=pk, transport=McpServer.Transport.STDIO)
    if not console.has_change_permission(request, server):
        raise PermissionDenied
    if request.method == "POST":
        size = mcp_servers.measure_files(server)
        with transaction.atomic():
            details = {"name": server.name, "files": size.files, "bytes": size.bytes}
            audit.record(request.user, audit.SERVER_FILES_DELETED, server, **details)
            mcp_servers.clear_files(server)
        deleted = _("Files of %(name)s deleted.") % {"name": server.name}
        messages.success(request, deleted)
        return redirect("admin:agents_mcpserver_change", pk)
    context = {"title": _("Delete files"), "opts": console.opts, **_files_context(server)}
    return render_page(request, "admin/agents/mcpserver/files.html", context)


def _files_context(server: McpServer) -> dict[str, Any]:
    size = mcp_servers.measure_files(server)
    if not size.files:
        return {"server": server, "size": gettext("No files."), "has_files": False}
    files = ngettext("%(count)s file", "%(count)s files", size.files)
    files = files % {"count": number_format(size.files)}
    sentence = gettext("%(size)s in %(files)s.")
    if size.is_partial:
        sentence = gettext("More than %(size)s in %(files)s.")
    description = sentence % {"size": filesizeformat(size.bytes), "files": files}
    return {"server": server, "size": description, "has_files": True}
