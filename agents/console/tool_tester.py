"""Runs one tool by hand, with the input and limits of a run."""

import json
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _

from agents import caches
from agents.access import audit
from agents.catalog import mcp_servers, tool_factory
from agents.db import database
from agents.engine.loop import AskPersonTool, FallbackStrategy
from agents.engine.tool import Tool
from agents.models import McpServer, ToolRegistration
from agents.models.secret import UnreadableSecret
from agents.models.types import AnyUser
from agents.runs.engine_messages import translate
from agents.web.presentation.formatting import format_value, parse_json_text

from . import circuit_breakers, figures
from .arguments_form import ArgumentsForm
from .tool_settings import Effect, Source, effect, input_schema, requires_approval


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRunResult:
    """The result of a call, as displayed in a step."""

    given: str
    seen: str
    is_error: bool
    took: str


def page(request: HttpRequest, pk: int, console: admin.ModelAdmin) -> HttpResponse:
    row = get_object_or_404(
        ToolRegistration.objects.select_related("server", "connection"), pk=pk
    )
    if not may_run(request.user, row):
        raise PermissionDenied
    why_not = refusal_reason(row)
    must_confirm = effect(row) != Effect.READ or requires_approval(row)
    data = request.POST if request.method == "POST" and not why_not else None
    form = ArgumentsForm(input_schema(row) or {}, data, must_confirm=must_confirm)
    context = {
        **console.admin_site.each_context(request),
        "title": _("Run %(name)s") % {"name": row.name},
        "opts": console.opts,
        "row": row,
        "form": form,
        "why_not": why_not,
        "outcome": run_tool(row, form.arguments, request.user) if form.is_valid() else None,
    }
    return render(request, "admin/agents/toolregistration/run.html", context)


def try_page(
    request: HttpRequest, console: admin.ModelAdmin, pk: int | None = None
) -> HttpResponse:
    """Call the HTTP tool in the form once, without saving it."""
    if not console.has_view_or_change_permission(request):
        raise PermissionDenied
    row = get_object_or_404(ToolRegistration, pk=pk, source=Source.HTTP) if pk else None
    may = (
        console.has_change_permission(request, row)
        if row
        else console.has_add_permission(request)
    )
    if not may:
        raise PermissionDenied
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    form = console.get_form(request, row, change=row is not None)(request.POST, instance=row)
    with transaction.atomic():  # the form may lock rows
        problems = [] if form.is_valid() else list(_form_problems(form))
    arguments, problem = _read_arguments(request.POST.get("arguments", ""))
    problems += [problem] if problem else []
    if (
        not problems
        and effect(form.instance) != Effect.READ
        and "confirmed" not in request.POST
    ):
        problems.append(_("Confirm that the call is made for real."))
    context = {
        **console.admin_site.each_context(request),
        "title": _("Test call"),
        "opts": console.opts,
        "problems": problems,
        "outcome": None if problems else run_tool(form.instance, arguments, request.user),
    }
    return render(request, "admin/agents/toolregistration/try.html", context)


def _read_arguments(text: str) -> tuple[dict[str, Any], str]:
    """Return the arguments, or why they can't be used."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        found = None
    if isinstance(found, dict):
        return found, ""
    return {}, _("Arguments must be a JSON object: {…}.")


def _form_problems(form: Any) -> Iterator[str]:
    for name, errors in form.errors.items():
        label = f"{form.fields[name].label}: " if name in form.fields else ""
        yield from (f"{label}{error}" for error in errors)


def may_run(user: AnyUser, row: ToolRegistration) -> bool:
    """Whether the user can change it and, for a program, start one."""
    is_program = row.server is not None and row.server.transport == McpServer.Transport.STDIO
    may_start = not is_program or user.has_perm(mcp_servers.STDIO_PERMISSION)
    return user.has_perm("agents.change_toolregistration") and may_start


def denial(user: AnyUser, tools: Iterable[ToolRegistration]) -> str:
    """Return which of a draft's tools the user can't run, or an empty string."""
    denied = sorted(tool.name for tool in tools if not may_run(user, tool))
    sentence = _(
        "You don't have permission to run %(tools)s. Remove it from the draft, or ask an "
        "administrator."
    )
    return sentence % {"tools": ", ".join(denied)} if denied else ""


def refusal_reason(row: ToolRegistration) -> str:
    """Return why it can't be run, or an empty string."""
    if row.is_gone:
        return _("The server no longer provides this tool.")
    if row.pending:
        return _("The server changed this tool's definition. Accept the change first.")
    if row.name == AskPersonTool.name and row.source == Source.OWN:
        return _("This tool asks the user a question during a run, so you can't run it here.")
    return (
        ""
        if input_schema(row) is not None
        else _("This tool can't run with its current settings.")
    )


def run_tool(row: ToolRegistration, arguments: dict[str, Any], user: AnyUser) -> ToolRunResult:
    """Record the user and argument names, then run the tool once."""
    subject = row if row.pk else "toolregistration"
    audit.record(user, audit.TOOL_RUN, subject, name=row.name, arguments=sorted(arguments))
    began = time.perf_counter()
    try:
        result = async_to_sync(_call_tool)(row, arguments, user)
    except UnreadableSecret as error:
        return ToolRunResult(
            given=_format_arguments(arguments), seen=str(error), is_error=True, took="—"
        )
    if not result.is_error:
        circuit_breakers.reset_tool(row.name)  # verified by a person
    return ToolRunResult(
        given=_format_arguments(arguments),
        seen=translate(result.error)
        if result.is_error
        else format_value(parse_json_text(result.output)),
        is_error=result.is_error,
        took=figures.seconds(time.perf_counter() - began),
    )


async def _call_tool(row: ToolRegistration, arguments: dict[str, Any], user: AnyUser) -> Any:
    """Call the tool once with its usual limits, ignoring its circuit."""
    async with _open_tool(row, user) as tool:
        try:
            tried = await FallbackStrategy(max_retries=0).execute_with_fallback(tool, arguments)
        finally:
            if effect(row) != Effect.READ:  # it may have changed what is cached
                await database.run(caches.evict, caches.group_name(row))
    return tried.result


@asynccontextmanager
async def _open_tool(row: ToolRegistration, user: AnyUser) -> AsyncIterator[Tool]:
    if row.source == Source.MCP:
        async with mcp_servers.open_tool(row, user) as tool:
            yield tool
    else:
        yield tool_factory.build_tools([row])[0]


def _format_arguments(arguments: dict[str, Any]) -> str:
    return format_value(json.loads(json.dumps(arguments)))
