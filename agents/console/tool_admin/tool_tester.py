"""Runs one tool by hand, with the input and limits of a run."""

import json
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _

from agents.access import audit
from agents.catalog import mcp_servers
from agents.catalog.tools import tool_factory
from agents.db import database
from agents.db.sentences import translate
from agents.engine.loop import AskPersonTool, FallbackStrategy
from agents.engine.tool import Tool
from agents.metering import caches
from agents.models import McpServer, ToolRegistration
from agents.models.secret import UnreadableSecret
from agents.models.types import AnyUser
from agents.tools.mcp.sign_in import SignInRequired
from agents.tools.web import WebSearchTool
from agents.web.presentation.formats import formatting
from agents.web.presentation.formats.formatting import format_value, parse_json_text

from ..admin_classes.pages import form_problems, posted_form, render_page
from . import circuit_breakers
from .arguments_form import ArgumentsForm
from .tool_settings import (
    Effect,
    Source,
    effect,
    input_schema,
    is_unconfigured,
    requires_approval,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRunResult:
    """The result of a call, as displayed in a step."""

    arguments: str
    observation: str
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
        "title": _("Run %(name)s") % {"name": row.name},
        "opts": console.opts,
        "row": row,
        "form": form,
        "why_not": why_not,
        "outcome": run_tool(row, form.arguments, request.user) if form.is_valid() else None,
    }
    return render_page(request, "admin/agents/toolregistration/run.html", context)


def try_page(
    request: HttpRequest, console: admin.ModelAdmin, pk: int | None = None
) -> HttpResponse:
    """Call the HTTP tool or the web search in the form once, without saving it."""
    is_search = Q(source=Source.OWN, name=WebSearchTool.name)
    tools = ToolRegistration.objects.filter(Q(source=Source.HTTP) | is_search)
    form = posted_form(console, request, pk, rows=tools)
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    problems = [
        f"{label}: {error}" if label else error
        for label, errors in form_problems(form)
        for error in errors
    ]
    try:
        arguments = json.loads(request.POST.get("arguments") or "{}")
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        problems.append(_("Arguments must be a JSON object: {…}."))
    if not problems and (reason := refusal_reason(form.instance)):
        problems.append(reason)
    if (
        not problems
        and effect(form.instance) != Effect.READ
        and "confirmed" not in request.POST
    ):
        problems.append(_("Confirm that you want to run this tool for real."))
    context = {
        "title": _("Test call"),
        "opts": console.opts,
        "problems": problems,
        "outcome": None if problems else run_tool(form.instance, arguments, request.user),
    }
    return render_page(request, "admin/agents/toolregistration/try.html", context)


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
    if is_unconfigured(row):
        return _("Choose a search service first.")
    return (
        ""
        if input_schema(row) is not None
        else _("This tool can't run with its current settings.")
    )


def run_tool(row: ToolRegistration, arguments: dict[str, Any], user: AnyUser) -> ToolRunResult:
    """Record the user and argument names, then run the tool once."""
    audit_subject = row if row.pk else "toolregistration"
    details = {"name": row.name, "arguments": sorted(arguments)}
    audit.record(user, audit.TOOL_RUN, audit_subject, **details)
    arguments_text = format_value(json.loads(json.dumps(arguments)))
    began = time.perf_counter()
    try:
        result = async_to_sync(_call_tool)(row, arguments, user)
    except (UnreadableSecret, SignInRequired) as error:
        return ToolRunResult(
            arguments=arguments_text,
            observation=translate(str(error)),
            is_error=True,
            took="—",
        )
    if result.is_error:
        observation = translate(result.error)
    else:
        circuit_breakers.reset_tool(row.name)  # verified by a person
        observation = format_value(parse_json_text(result.output))
    return ToolRunResult(
        arguments=arguments_text,
        observation=observation,
        is_error=result.is_error,
        took=formatting.seconds(time.perf_counter() - began),
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
