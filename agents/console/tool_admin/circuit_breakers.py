"""Circuit breakers of models and tools, and a page to close one."""

import logging
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import Self

from django.contrib import admin, messages
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from agents.catalog.agent_factory import CIRCUITS
from agents.db.sentences import translate
from agents.engine.resilience import CircuitState
from agents.engine.text import shorten
from agents.models import ToolRegistration
from agents.models.types import LazyText

from ..admin_classes.pages import render_page

PERMISSION = "agents.change_agent"
MAX_ERROR_CHARS = 400
KIND_LABELS = {"model": _("model"), "provider": _("provider"), "tool": _("tool")}

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitView:
    """A circuit as text."""

    key: str
    kind: str
    name: str
    page: str
    is_open: bool
    failures: int
    since: datetime
    next_try: LazyText
    error: str

    @classmethod
    def read(cls, state: CircuitState, pages: dict[str, str]) -> Self:
        kind, _colon, name = state.label.partition(":")
        next_try: LazyText = _("in %(seconds)d s") % {"seconds": ceil(state.retry_in)}
        if state.state == "closed":
            next_try = "—"
        elif state.state == "half_open":
            next_try = _("on next use")
        return cls(
            key=state.key,
            kind=str(KIND_LABELS.get(kind, kind)),
            name=name,
            page=pages.get(state.key, ""),
            is_open=state.state != "closed",
            failures=state.failures,
            since=state.since,
            next_try=next_try,
            error=shorten(translate(state.error), MAX_ERROR_CHARS),
        )


HEALTHY = _("healthy")


def tool_state(name: str) -> LazyText:
    """Return a tool's recent state as text."""
    key = f"tool:{name}"
    state = next((state for state in CIRCUITS.state() if state.key == key), None)
    if state is None or state.state == "closed":
        return HEALTHY
    if state.state == "half_open":
        return _("failing, retries on next use")
    return _("failing, retries in %(seconds)d s") % {"seconds": ceil(state.retry_in)}


def reset_tool(tool: str) -> None:
    """Close a changed tool's circuit, because earlier failures no longer apply."""
    CIRCUITS.close(f"tool:{tool}")


def urls(site: admin.AdminSite) -> list[URLPattern]:
    """Return URLs of pages without a model, registered with those of agents."""
    return [
        path("circuits/", site.admin_view(page), name="agents_circuits"),
        path("circuits/close/", site.admin_view(close), name="agents_circuits_close"),
    ]


@permission_required(PERMISSION, raise_exception=True)
def page(request: HttpRequest) -> HttpResponse:
    change = "admin:agents_toolregistration_change"
    tools = ToolRegistration.objects.values_list("pk", "name")
    tool_pages = {f"tool:{name}": reverse(change, args=[pk]) for pk, name in tools}
    circuits = [CircuitView.read(state, tool_pages) for state in CIRCUITS.state()]
    circuits.sort(key=lambda circuit: (not circuit.is_open, not circuit.failures))
    context = {
        "title": _("Circuit breakers"),
        "circuits": circuits,
        "is_calm": not any(circuit.failures for circuit in circuits),
    }
    return render_page(request, "admin/agents/circuits.html", context)


@require_POST
@permission_required(PERMISSION, raise_exception=True)
def close(request: HttpRequest) -> HttpResponse:
    """Close a circuit, because an administrator says that it works again."""
    key = request.POST.get("key", "")
    label = next((state.label for state in CIRCUITS.state() if state.key == key), None)
    if label is not None:
        CIRCUITS.close(key)
        logger.info("%s reset the circuit breaker of %s.", request.user, label)
        name = label.partition(":")[2]
        messages.success(
            request, _("%(name)s will be retried on its next use.") % {"name": name}
        )
    else:
        messages.warning(request, _("This circuit breaker no longer exists."))
    return redirect("admin:agents_circuits")
