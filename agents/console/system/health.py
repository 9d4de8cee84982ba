"""The health page."""

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from django.contrib import admin
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import filesizeformat
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.models import ServerProcess

from ..admin_classes.pages import render_page
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
    stalled_in: str

    @classmethod
    def of(cls, row: ServerProcess) -> Self:
        stalls = "—"
        if row.stalls:
            longest = health_checks.format_number(row.longest_stall)
            params = {"count": row.stalls, "seconds": longest}
            stalls = _("%(count)d, longest %(seconds)s s") % params
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
            stalls=stalls,
            stalled_in=row.stalled_in,
        )


def urls(site: admin.AdminSite) -> list[URLPattern]:
    return [path("health/", site.admin_view(page), name="agents_health")]


@permission_required(PERMISSION, raise_exception=True)
def page(request: HttpRequest) -> HttpResponse:
    processes = list(ServerProcess.objects.with_silence())
    checks = list(health_checks.all_checks(processes))
    context = {
        "title": _("Health"),
        "findings": sorted(checks, key=lambda check: check.is_good),
        "troubles": sum(not check.is_good for check in checks),
        "processes": [ProcessView.of(process) for process in processes],
        "remarks": deployment_checks.deploy_warnings(),
        "versions": list(deployment_checks.versions()),
        "at": timezone.now(),
    }
    return render_page(request, "admin/agents/health.html", context)
