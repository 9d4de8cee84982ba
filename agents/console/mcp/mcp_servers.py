"""MCP servers: setup, test, import, and acceptance of changed tools."""

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import URLPattern, reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from agents.catalog import mcp_servers
from agents.db.sentences import translate
from agents.engine.text import shorten
from agents.models import Deletion, McpServer, McpSignIn
from agents.tools.mcp.configuration.config import ServerConfig, read_folders
from agents.tools.mcp.process import server_folder
from agents.tools.mcp.process.launch import (
    LaunchRefused,
    check_launch,
    launch_warnings,
    resolve_argv,
)
from agents.web.presentation.formats import formatting

from ..admin_classes import deleted_rows
from ..admin_classes.model_admin import ConsoleAdmin
from ..system import sandbox_status
from . import (
    server_actions,
    server_cards,
    server_files,
    server_gallery_page,
    server_import,
    server_setup,
    uptime_strip,
)
from .mcp_server_form import ServerForm, ServerPageForm
from .server_actions import disconnect_on_commit

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

MAX_ARG_CHARS = 2_000
CountedServer: TypeAlias = "WithAnnotations[McpServer, ToolCounts]"


class ToolCounts(TypedDict):
    offered_count: int
    blocked_count: int


@admin.register(McpServer)
class McpServerAdmin(ConsoleAdmin):
    form = ServerForm
    can_rename_deleted = False  # the name is part of its tools' names
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
        (
            _("Remote server (HTTP)"),
            {"fields": ["url", "sign_in", "headers"], "classes": ["by-address"]},
        ),
        (
            _("Local program"),
            {
                "fields": [
                    "command_line",
                    "env",
                    "folders",
                    ("memory_mb", "cpu_seconds"),
                    "sandbox",
                    "argv",
                    "files",
                ],
                "classes": ["by-program"],
            },
        ),
        (
            _("Start and sharing"),
            {"fields": ["connect_timeout", "isolation", "max_instances"]},
        ),
    ]
    status_fieldset = (
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
        blocked = Count("tools", filter=Q(tools__pending__isnull=False))
        servers = super().get_queryset(request)
        return servers.annotate(offered_count=Count("tools"), blocked_count=blocked)

    @admin.display(description=_("last error"))
    def trouble(self, server: McpServer) -> str:
        return shorten(server.last_error, 120) if server.state == "failed" else ""

    @admin.display(description=_("tools"))
    def tool_count(self, server: CountedServer) -> str:
        count = server.blocked_count
        if not count:
            return str(server.offered_count)
        blocked = ngettext("%d blocked", "%d blocked", count) % count
        return f"{server.offered_count} ({blocked})"

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
        arguments = [(shorten(argument, MAX_ARG_CHARS),) for argument in resolve_argv(config)]
        lines = format_html_join(mark_safe("<br>"), "<code>{}</code>", arguments)
        warnings = [(translate(sentence),) for sentence in launch_warnings(config)]
        return lines + format_html_join("", '<p class="caution">{}</p>', warnings)

    @admin.display(description=_("files"))
    def files(self, server: McpServer) -> SafeString | str:
        if not server.pk or server.transport != McpServer.Transport.STDIO:
            return "—"
        return server_files.render_size(server)

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
        return "—" if ms is None else formatting.milliseconds(ms)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """Add the redirect URI, and the status only for saved servers."""
        [basics, remote, *others] = self.fieldsets
        status = [self.status_fieldset] if obj else []
        return [basics, remote, _client_fieldset(request), *others, *status]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """Make the name read-only, because it is the prefix of its tools' names."""
        return ["name", *self.readonly_fields] if obj else self.readonly_fields

    def get_form(self, request: HttpRequest, *args: Any, **kwargs: Any) -> type[ServerForm]:
        form_class = super().get_form(request, *args, **{"form": ServerPageForm, **kwargs})
        return type("Form", (form_class,), {"user": request.user})

    # Permissions

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Only those who may start a program can change one on this machine."""
        may = super().has_change_permission(request, obj)
        is_program = obj is not None and obj.transport == McpServer.Transport.STDIO
        return may and (not is_program or request.user.has_perm(mcp_servers.STDIO_PERMISSION))

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if change and {"url", "sign_in", "oauth_client_id"} & {*form.changed_data}:
            _end_sign_ins([obj])
        disconnect_on_commit(obj.name)
        if obj.transport == McpServer.Transport.STDIO:
            for sentence in launch_warnings(_public_config(obj)):
                messages.warning(request, f"{obj.name}: {translate(sentence)}")

    def response_add(
        self, request: HttpRequest, obj: Any, post_url_continue: str | None = None
    ) -> HttpResponse:
        return self._connect(request, obj) or super().response_add(
            request, obj, post_url_continue
        )

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        return self._connect(request, obj) or super().response_change(request, obj)

    def _connect(self, request: HttpRequest, server: McpServer) -> HttpResponse | None:
        """Lead to the page that connects, unless the form stays open."""
        stays = {"_continue", "_addanother", "_popup"} & request.POST.keys()
        if stays or not server.enabled:
            return None
        return redirect("admin:agents_mcpserver_setup", server.pk)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Count the files that are deleted, too."""
        labels, counts, lacking, protected = super().get_deleted_objects(objs, request)
        files = sum(mcp_servers.measure_files(server).files for server in objs)
        if files:
            counts = {**counts, str(_("files of this server")): files}
        return labels, counts, lacking, protected

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        name = obj.name
        _end_sign_ins([obj])
        super().delete_model(request, obj)
        disconnect_on_commit(name)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        names = list(queryset.values_list("name", flat=True))
        _end_sign_ins(queryset)
        super().delete_queryset(request, queryset)
        disconnect_on_commit(*names)

    def may_restore(self, user: User, deletion: Deletion) -> bool:
        """Only those who may start a program can restore one."""
        if user.has_perm(mcp_servers.STDIO_PERMISSION):
            return True
        [server, *_others] = deleted_rows.read(deletion)
        return isinstance(server, McpServer) and server.transport != McpServer.Transport.STDIO

    def erase_deleted(self, deletion: Deletion) -> None:
        """Delete the server's files, which a restored server has again."""
        pk = int(deletion.object_id)
        transaction.on_commit(partial(server_folder.delete, mcp_servers.home_folder(pk)))

    # Pages

    def get_urls(self) -> list[URLPattern]:
        def page_path(route: str, view: Any, name: str) -> URLPattern:
            return self.admin_path(route, view, f"agents_mcpserver_{name}", console=self)

        return [
            page_path("import/", server_import.page, "import"),
            page_path("gallery/", server_gallery_page.page, "gallery"),
            page_path("gallery/<slug:key>/", server_gallery_page.entry_page, "gallery_entry"),
            page_path("<int:pk>/setup/", server_setup.page, "setup"),
            page_path("<int:pk>/setup/agents/", server_setup.choose_agents, "agents"),
            page_path("<int:pk>/pause/", server_actions.pause, "pause"),
            page_path("try/", server_actions.try_out, "try"),
            page_path("<int:pk>/try/", server_actions.try_out, "try"),
            page_path("switch/<int:pk>/", server_actions.switch_tool, "switch"),
            page_path("<int:pk>/test/", server_actions.test_connection, "test"),
            page_path("accept/<int:pk>/", server_actions.accept_tool, "accept"),
            page_path("<int:pk>/files/", server_files.page, "files"),
            *super().get_urls(),
        ]

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **options: Any
    ) -> HttpResponse:
        server = options.get("obj")
        rows = server.tools.order_by("name") if server else []
        tools = [
            (row, mcp_servers.pending_changes(row), mcp_servers.pending_digest(row))
            for row in rows
        ]
        tools.sort(key=lambda tool: not tool[1])  # pending decisions first
        may_accept = request.user.has_perm("agents.change_toolregistration")
        context |= {"tools": tools, "may_accept": may_accept}
        context["strip"] = uptime_strip.build_strip(server) if server else None
        return super().render_change_form(request, context, *args, **options)

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


def _client_fieldset(request: HttpRequest) -> Any:
    """Return the fields of an OAuth client, with the redirect URI to enter at the server."""
    url = request.build_absolute_uri(reverse("runs:mcp_callback"))
    context = {"redirect_uri": url}
    help_text = render_to_string("admin/agents/mcpserver/_oauth_client.html", context)
    return (
        _("OAuth client"),
        {
            "fields": ["oauth_client_id", "oauth_client_secret"],
            "classes": ["by-address", "by-sign-in", "collapse"],
            "description": help_text,
        },
    )


def _end_sign_ins(servers: Iterable[McpServer]) -> None:
    """Revoke all sign-ins: a restored server, or one at another URL, doesn't get them."""
    mcp_servers.end_sign_ins(McpSignIn.objects.filter(server__in=list(servers)))


def _public_config(server: McpServer) -> ServerConfig:
    """Return the server without its secrets, to describe how it starts."""
    return ServerConfig(
        name=server.name,
        command=server.command,
        args=tuple(server.args),
        folders=read_folders(server.folders.splitlines()),
        sandbox=mcp_servers.sandbox_policy(),
    )
