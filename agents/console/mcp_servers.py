"""MCP servers: setup, test, import, and acceptance of changed tools."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from asgiref.sync import async_to_sync
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.defaultfilters import filesizeformat
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.utils.formats import number_format
from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import Truncator
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from agents.access import audit
from agents.catalog import mcp_servers
from agents.models import McpServer, ToolRegistration
from agents.runs.engine_messages import translate
from agents.tools.mcp.config import ServerConfig, read_folders
from agents.tools.mcp.launch import LaunchRefused, check_launch, launch_warnings, resolve_argv
from agents.tools.mcp.server_folder import FolderSize

from . import (
    circuit_breakers,
    figures,
    sandbox_status,
    server_cards,
    server_gallery_page,
    server_import,
    uptime_strip,
)
from .mcp_server_form import ServerForm
from .model_admin import ConsoleAdmin

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

MAX_ARG_CHARS = 2_000
CountedServer: TypeAlias = "WithAnnotations[McpServer, ToolCounts]"
FILES_HELP = _(
    "Its home, working and temporary folder. They stay when the server stops, restarts or is "
    "renamed. Relative paths are in the working folder."
)


class ToolCounts(TypedDict):
    offers: int
    held: int


@admin.register(McpServer)
class McpServerAdmin(ConsoleAdmin):
    form = ServerForm
    list_display = ["name", "transport", "state", "trouble", "tool_count", "enabled"]
    list_filter = ["state", "transport", "enabled"]
    list_per_page = 200
    search_fields = ["name", "url", "command"]
    readonly_fields = [
        "argv",
        "sandbox",
        "files",
        "state",
        "state_since",
        "last_error",
        "latency",
        "restarts",
    ]
    fieldsets = [
        (None, {"fields": ["name", "transport", "enabled", "timeout", "trusts_annotations"]}),
        (_("Remote server (HTTP)"), {"fields": ["url", "headers"], "classes": ["by-address"]}),
        (
            _("Local program"),
            {
                "fields": [
                    *("command", "args", "env", "folders", ("memory_mb", "cpu_seconds")),
                    *("sandbox", "argv", "files"),
                ],
                "classes": ["by-program"],
            },
        ),
        (
            _("Start and sharing"),
            {"fields": ["connect_timeout", "isolation", "max_instances"]},
        ),
    ]
    heard_of = (
        _("Last known status"),
        {
            "fields": ["state", "state_since", "last_error", "latency", "restarts"],
            "description": _(
                "“Test connection” uses the saved settings and updates this status."
            ),
        },
    )

    # Columns

    def get_queryset(self, request: HttpRequest) -> QuerySet[McpServer]:
        held = Count("tools", filter=Q(tools__pending__isnull=False))
        return super().get_queryset(request).annotate(offers=Count("tools"), held=held)

    @admin.display(description=_("last error"))
    def trouble(self, server: McpServer) -> str:
        return Truncator(server.last_error).chars(120) if server.state == "failed" else ""

    @admin.display(description=_("tools"))
    def tool_count(self, server: CountedServer) -> str:
        if not server.held:
            return str(server.offers)
        held = ngettext("%d blocked", "%d blocked", server.held) % server.held
        return f"{server.offers} ({held})"

    @admin.display(description=_("full command"))
    def argv(self, server: McpServer) -> SafeString | str:
        """List the arguments one by one, so that spaces inside them are visible."""
        if server.transport != McpServer.Transport.STDIO or not server.pk:
            return "—"
        config = _public_config(server)
        try:
            check_launch(config)
        except LaunchRefused as refusal:
            return translate(str(refusal))
        words = [(Truncator(word).chars(MAX_ARG_CHARS),) for word in resolve_argv(config)]
        lines = format_html_join(mark_safe("<br>"), "<code>{}</code>", words)
        warned = [(translate(sentence),) for sentence in launch_warnings(config)]
        return lines + format_html_join("", '<p class="caution">{}</p>', warned)

    @admin.display(description=_("files"))
    def files(self, server: McpServer) -> SafeString | str:
        """Return the size of its home, working and temporary folder, and a link to delete."""
        if not server.pk or server.transport != McpServer.Transport.STDIO:
            return "—"
        return render_to_string(
            "admin/agents/mcpserver/_files.html",
            {**_files_context(server), "help": FILES_HELP},
        )

    @admin.display(description=_("isolation"))
    def sandbox(self, server: McpServer) -> SafeString | str:
        """Return how far it is isolated from this server's files."""
        if server.pk and server.transport != McpServer.Transport.STDIO:
            return "—"
        level = sandbox_status.describe_config(_public_config(server))
        return f"{level} {sandbox_status.describe_limits(server)}"

    @admin.display(description=_("latency"))
    def latency(self, server: McpServer) -> str:
        ms = server.latency_ms
        return "—" if ms is None else figures.milliseconds(ms)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """Add the status only for saved servers."""
        return [*self.fieldsets, self.heard_of] if obj else self.fieldsets

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """Make the name read-only, because it is the prefix of its tools' names."""
        return ["name", *self.readonly_fields] if obj else self.readonly_fields

    def get_form(self, request: HttpRequest, *args: Any, **kwargs: Any) -> type[ServerForm]:
        form = super().get_form(request, *args, **kwargs)
        return type("Form", (form,), {"user": request.user})

    # Permissions

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Only those who may start a program can change one on this machine."""
        may = super().has_change_permission(request, obj)
        is_program = obj is not None and obj.transport == McpServer.Transport.STDIO
        return may and (not is_program or request.user.has_perm(mcp_servers.STDIO_PERMISSION))

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        _disconnect_on_commit(obj.name)
        _add_warnings(request, obj)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Count the files that are deleted, too."""
        labels, counts, lacking, protected = super().get_deleted_objects(objs, request)
        files = sum(mcp_servers.measure_files(server).files for server in objs)
        more = {str(_("files of this server")): files} if files else {}
        return labels, {**counts, **more}, lacking, protected

    def can_undo(self, rows: list[Any]) -> bool:
        """Deleted files don't come back."""
        files = any(mcp_servers.measure_files(server).files for server in rows)
        return not files and super().can_undo(rows)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        pk = obj.pk
        super().delete_model(request, obj)
        transaction.on_commit(partial(mcp_servers.delete_files, pk, obj.name))

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        rows = list(queryset.values_list("name", "pk"))
        super().delete_queryset(request, queryset)
        for name, pk in rows:
            transaction.on_commit(partial(mcp_servers.delete_files, pk, name))

    # Pages

    def get_urls(self) -> list[URLPattern]:
        def page(view: Any) -> Any:
            return self.admin_site.admin_view(view)

        own = [
            path(
                "import/",
                page(server_import.page),
                {"console": self},
                name="agents_mcpserver_import",
            ),
            path(
                "gallery/",
                page(server_gallery_page.page),
                {"console": self},
                name="agents_mcpserver_gallery",
            ),
            path(
                "gallery/<slug:key>/",
                page(server_gallery_page.entry_page),
                {"console": self},
                name="agents_mcpserver_gallery_entry",
            ),
            path("<int:pk>/pause/", page(self.pause_view), name="agents_mcpserver_pause"),
            path("try/", page(self.try_view), name="agents_mcpserver_try"),
            path("<int:pk>/try/", page(self.try_view), name="agents_mcpserver_try"),
            path("switch/<int:pk>/", page(self.switch_view), name="agents_mcpserver_switch"),
            path("<int:pk>/test/", page(self.test_view), name="agents_mcpserver_test"),
            path("accept/<int:pk>/", page(self.accept_view), name="agents_mcpserver_accept"),
            path("<int:pk>/files/", page(self.files_view), name="agents_mcpserver_files"),
        ]
        return [*own, *super().get_urls()]

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **about: Any
    ) -> HttpResponse:
        server = about.get("obj")
        rows = server.tools.order_by("name") if server else []
        tools = [
            (row, mcp_servers.pending_changes(row), mcp_servers.pending_digest(row))
            for row in rows
        ]
        tools.sort(key=lambda tool: not tool[1])  # pending decisions first
        may_accept = request.user.has_perm("agents.change_toolregistration")
        context |= {"tools": tools, "may_accept": may_accept}
        context["strip"] = uptime_strip.build_strip(server) if server else None
        return super().render_change_form(request, context, *args, **about)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Display the servers as cards."""
        response = super().changelist_view(request, extra_context)
        if isinstance(response, TemplateResponse) and response.context_data:
            listed = response.context_data.get("cl")
            if listed is not None:
                cards = server_cards.build_cards(listed.queryset)
                changeable = {
                    card.server.pk
                    for card in cards
                    if self.has_change_permission(request, card.server)
                }
                response.context_data |= {"cards": cards, "changeable": changeable}
        return response

    @method_decorator(require_POST)
    def pause_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Pause or resume a server; its tools can't be called meanwhile."""
        server = get_object_or_404(McpServer, pk=pk)
        if not self.has_change_permission(request, server):
            raise PermissionDenied
        before, server.enabled = server.enabled, request.POST.get("state") == "on"
        vars(request)["changes"] = {"enabled": [before, server.enabled]}
        with transaction.atomic():
            server.save(update_fields=["enabled"])
            self.log_change(request, server, [{"changed": {"fields": ["enabled"]}}])
            _disconnect_on_commit(server.name)
        paused, resumed = _("%(name)s is paused."), _("%(name)s is in use again.")
        sentence = resumed if server.enabled else paused
        messages.success(request, sentence % {"name": server.name})
        return redirect("admin:agents_mcpserver_changelist")

    @method_decorator(require_POST)
    def test_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Connect once, list the tools, and report the result."""
        server = get_object_or_404(McpServer, pk=pk)
        if not self.has_change_permission(request, server):
            raise PermissionDenied
        found = async_to_sync(mcp_servers.sync)(server, request.user)
        details = {"name": server.name, "state": str(found.health.state)}
        audit.record(request.user, audit.SERVER_TESTED, server, **details)
        self._add_messages(request, found)
        if request.POST.get("back") == "list":
            return redirect("admin:agents_mcpserver_changelist")
        return redirect(_change_url(server.pk))

    def _add_messages(self, request: HttpRequest, found: mcp_servers.SyncResult) -> None:
        health = found.health
        if health.state != "ready":
            messages.error(request, health.error)
            return
        names = ", ".join(tool.name for tool in health.tools)
        messages.success(request, _("Connected. Tools: %(names)s") % {"names": names or "—"})
        if found.changed:
            changed = _("Changed, and blocked until you accept the changes:")
            messages.warning(request, f"{changed} {', '.join(found.changed)}")
        if found.gone:
            gone = _("Removed from the server:")
            messages.warning(request, f"{gone} {', '.join(found.gone)}")

    def files_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Ask for confirmation, then delete the server's files."""
        server = get_object_or_404(McpServer, pk=pk, transport=McpServer.Transport.STDIO)
        if not self.has_change_permission(request, server):
            raise PermissionDenied
        if request.method == "POST":
            size = mcp_servers.measure_files(server)
            with transaction.atomic():
                details = {"name": server.name, "files": size.files, "bytes": size.bytes}
                audit.record(request.user, audit.SERVER_FILES_DELETED, server, **details)
                mcp_servers.clear_files(server)
            deleted = _("Files of %(name)s deleted.") % {"name": server.name}
            messages.success(request, deleted)
            return redirect(_change_url(pk))
        context = {
            **self.admin_site.each_context(request),
            "title": _("Delete files"),
            "opts": self.opts,
            **_files_context(server),
        }
        return render(request, "admin/agents/mcpserver/files.html", context)

    @method_decorator(require_POST)
    def try_view(self, request: HttpRequest, pk: int | None = None) -> HttpResponse:
        """Connect to the server in the form, without saving it."""
        server = get_object_or_404(McpServer, pk=pk) if pk else None
        may_change = server is not None and self.has_change_permission(request, server)
        if not (may_change if server else self.has_add_permission(request)):
            raise PermissionDenied
        form = self.get_form(request, server, change=may_change)(request.POST, instance=server)
        with transaction.atomic():  # the form may lock rows
            is_valid = form.is_valid()
        if is_valid:
            details = {"name": form.wanted.name, "is_saved": False}
            audit.record(request.user, audit.SERVER_TESTED, server or "mcpserver", **details)
        look = async_to_sync(mcp_servers.probe)
        context = {
            **self.admin_site.each_context(request),
            "title": _("Test without saving"),
            "opts": self.opts,
            "problems": list(_form_problems(form)),
            "health": look(form.wanted, request.user) if is_valid else None,
            "warnings": [translate(each) for each in _launch_warnings(form.wanted)]
            if is_valid
            else [],
        }
        return render(request, "admin/agents/mcpserver/try.html", context)

    @method_decorator(require_POST)
    def switch_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Enable or disable one tool of a server, for all agents."""
        row = get_object_or_404(ToolRegistration, pk=pk, server__isnull=False)
        if not request.user.has_perm("agents.change_toolregistration"):
            raise PermissionDenied
        row.enabled = request.POST.get("enabled") == "on"
        with transaction.atomic():
            row.save(update_fields=["enabled"])
            self.log_change(request, row, [{"changed": {"fields": ["enabled"]}}])
        circuit_breakers.reset_tool(row.name)
        on, off = _("Enabled: %(name)s"), _("Disabled: %(name)s")
        sentence = on if row.enabled else off
        messages.success(request, sentence % {"name": row.name})
        return redirect(f"{_change_url(row.server_id)}#tool-{row.pk}")

    @method_decorator(require_POST)
    def accept_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Accept the displayed change, and no later one."""
        row = get_object_or_404(ToolRegistration, pk=pk, server__isnull=False)
        if not request.user.has_perm("agents.change_toolregistration"):
            raise PermissionDenied
        try:
            with transaction.atomic():
                mcp_servers.accept(row, request.POST.get("seen", ""))
                self.keep(request, audit.TOOL_ACCEPTED, row)
        except mcp_servers.DefinitionChanged:
            messages.error(request, _("The definition changed again. Review the new changes."))
        else:
            messages.success(request, _("%(name)s accepted.") % {"name": row.name})
        return redirect(_change_url(row.server_id))


def _form_problems(form: ServerForm) -> Iterator[tuple[str, list[str]]]:
    """Yield problems with their field's label."""
    for name, errors in form.errors.items():
        yield (
            str(form.fields[name].label) if name in form.fields else "",
            list(map(str, errors)),
        )


def _files_context(server: McpServer) -> dict[str, Any]:
    size = mcp_servers.measure_files(server)
    return {"server": server, "size": _describe_size(size), "has_files": size.files > 0}


def _describe_size(size: FolderSize) -> str:
    if not size.files:
        return gettext("No files.")
    counted = ngettext("%(count)s file", "%(count)s files", size.files) % {
        "count": number_format(size.files)
    }
    words = {"size": filesizeformat(size.bytes), "files": counted}
    if size.is_partial:
        return gettext("More than %(size)s in %(files)s.") % words
    return gettext("%(size)s in %(files)s.") % words


def _disconnect_on_commit(*names: str) -> None:
    """Disconnect after the commit: a run that connects earlier would use the old settings."""
    for name in names:
        transaction.on_commit(partial(mcp_servers.disconnect, name))


def _public_config(server: McpServer) -> ServerConfig:
    """Return the server without its secrets, to describe how it starts."""
    return ServerConfig(
        name=server.name,
        command=server.command,
        args=tuple(server.args),
        folders=read_folders(server.folders.splitlines()),
        sandbox=mcp_servers.sandbox_policy(),
    )


def _launch_warnings(wanted: ServerConfig) -> list[str]:
    return launch_warnings(wanted) if wanted.transport == "stdio" else []


def _add_warnings(request: HttpRequest, server: McpServer) -> None:
    if server.transport == McpServer.Transport.STDIO:
        for sentence in launch_warnings(_public_config(server)):
            messages.warning(request, f"{server.name}: {translate(sentence)}")


def _change_url(server: int | None) -> str:
    return reverse("admin:agents_mcpserver_change", args=[server])
