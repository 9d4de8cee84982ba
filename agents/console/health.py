"""The health page."""

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from django.contrib import admin
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.defaultfilters import filesizeformat
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.models import ServerProcess

from . import deployment_checks, health_checks

PERMISSION = "agents.view_serverprocess"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessView:
    """A process as text."""

    name: str
    kind: str
    version: str
    since: datetime
    last_seen: str
    is_silent: bool
    runs: int
    sockets: int
    memory: str
    stalls: str
    where: str

    @classmethod
    def of(cls, row: ServerProcess) -> Self:
        return cls(
            name=row.short_name,
            kind=row.get_kind_display(),
            version=row.version,
            since=row.started_at,
            last_seen=_("%(time)s ago") % {"time": health_checks.format_duration(row.silence)},
            is_silent=row.silence > health_checks.MAX_SILENCE,
            runs=row.runs,
            sockets=row.sockets,
            memory=filesizeformat(row.memory),
            stalls=_format_stalls(row),
            where=row.stalled_in,
        )


def urls(site: admin.AdminSite) -> list[URLPattern]:
    return [path("health/", site.admin_view(page), name="agents_health")]


@permission_required(PERMISSION, raise_exception=True)
def page(request: HttpRequest) -> HttpResponse:
    processes = list(ServerProcess.objects.with_silence())
    found = list(health_checks.all_checks(processes))
    context = {
        **admin.site.each_context(request),
        "title": _("Health"),
        "findings": sorted(found, key=lambda finding: finding.is_good),
        "troubles": sum(not finding.is_good for finding in found),
        "processes": [ProcessView.of(process) for process in processes],
        "remarks": deployment_checks.deploy_warnings(),
        "versions": list(deployment_checks.versions()),
        "at": timezone.now(),
    }
    return render(request, "admin/agents/health.html", context)


def _format_stalls(row: ServerProcess) -> str:
    if not row.stalls:
        return "—"
    figures = {"count": row.stalls, "seconds": health_checks.format_number(row.longest_stall)}
    return _("%(count)d, longest %(seconds)s s") % figures
