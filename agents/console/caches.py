"""The page of caches: size, hits, savings, and what providers' prompt caches did."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.decorators import permission_required
from django.db.models import Count, Q, QuerySet, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from agents.access.requests import signed_in_user
from agents.db.installation import configured
from agents.metering import caches
from agents.models import Agent, AgentStep, CacheEntry, CacheUsage, Run, ToolRegistration
from agents.models.metering.caches import CacheKind
from agents.web.presentation.formats import formatting

from .admin_classes.pages import render_page
from .language_models import model_usage

PERMISSION = "agents.change_agent"
PERIOD = timedelta(days=7)
MICROS = 1_000_000
MAX_MODELS = 50

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheRow:
    """A tool or agent whose results are saved, with the last seven days."""

    source: str
    name: str
    url: str
    kind: str
    scope: str
    lifetime_ms: float | None
    entries: int
    size: int
    hits: int
    misses: int
    seconds: float
    cost: float

    @property
    def hit_rate(self) -> str:
        tried = self.hits + self.misses
        return formatting.percent(self.hits / tried) if tried else "—"

    @property
    def saved_ms(self) -> float:
        return self.seconds * 1000


def urls(site: admin.AdminSite) -> list[URLPattern]:
    return [
        path("caches/", site.admin_view(page), name="agents_caches"),
        path("caches/clear/", site.admin_view(clear), name="agents_caches_clear"),
    ]


@permission_required(PERMISSION, raise_exception=True)
def page(request: HttpRequest) -> HttpResponse:
    rows = load_rows()
    hits = sum(row.hits for row in rows)
    misses = sum(row.misses for row in rows)
    runs = model_usage.visible_runs(signed_in_user(request))
    context = {
        "title": _("Caches"),
        "rows": rows,
        "models": prompt_caches(runs) if runs is not None else [],
        "entries": sum(row.entries for row in rows),
        "size": sum(row.size for row in rows),
        "max_entries": configured.CACHE_ENTRIES.value,
        "max_size": configured.CACHE_MB.value,
        "hits": hits,
        "hit_rate": formatting.percent(hits / (hits + misses)) if hits + misses else "—",
        "saved_ms": sum(row.saved_ms for row in rows),
        "saved": sum(row.cost for row in rows),
        "tools_url": reverse("admin:agents_toolregistration_changelist"),
    }
    return render_page(request, "admin/agents/caches.html", context)


@require_POST
@permission_required(PERMISSION, raise_exception=True)
def clear(request: HttpRequest) -> HttpResponse:
    """Delete the saved results of one tool or agent, or all."""
    source = request.POST.get("source", "")
    if source and source not in {row.source for row in load_rows()}:
        messages.warning(request, _("This cache no longer exists."))
        return redirect("admin:agents_caches")
    count = caches.clear(source)
    logger.info("%s cleared the cache of %s.", request.user, source or "everything")
    sentence = ngettext(
        "%(count)d saved result was deleted.", "%(count)d saved results were deleted.", count
    )
    messages.success(request, sentence % {"count": count})
    return redirect("admin:agents_caches")


def load_rows() -> list[CacheRow]:
    """Return every cache that is on, has entries, or was used in the last seven days."""
    caches.hits.flush()
    entries = {
        row["source"]: row
        for row in CacheEntry.objects.order_by()
        .values("source")
        .annotate(entries=Count("pk"), size=Sum("size"))
    }
    since = timezone.localdate() - PERIOD
    used = {
        row["source"]: row
        for row in CacheUsage.objects.filter(day__gt=since)
        .order_by()
        .values("source")
        .annotate(*(Sum(name) for name in ("hits", "misses", "seconds", "cost_micros")))
    }
    used_pks: dict[str, set[int]] = {"tool": set(), "agent": set()}
    for source in entries.keys() | used.keys():
        kind, _colon, pk = source.partition(":")
        if kind in used_pks:
            used_pks[kind].add(int(pk))
    rows = []
    for tool in ToolRegistration.objects.filter(
        ~Q(result_cache="") | Q(pk__in=used_pks["tool"])
    ):
        source = f"tool:{tool.pk}"
        rows.append(
            CacheRow(
                source=source,
                name=tool.name,
                url=reverse("admin:agents_toolregistration_change", args=[tool.pk]),
                kind=str(CacheKind.TOOL.label),
                scope=tool.get_result_cache_display(),
                lifetime_ms=tool.result_cache_seconds * 1000.0 if tool.result_cache else None,
                **_figures(entries.get(source, {}), used.get(source, {})),
            )
        )
    for agent in Agent.objects.filter(~Q(reply_cache="") | Q(pk__in=used_pks["agent"])):
        source = f"agent:{agent.pk}"
        rows.append(
            CacheRow(
                source=source,
                name=agent.name,
                url=reverse("admin:agents_agent_change", args=[agent.pk]),
                kind=str(CacheKind.MODEL.label),
                scope=agent.get_reply_cache_display(),
                lifetime_ms=agent.reply_cache_seconds * 1000.0 if agent.reply_cache else None,
                **_figures(entries.get(source, {}), used.get(source, {})),
            )
        )
    return sorted(rows, key=lambda row: (-row.hits, -row.size, row.name))


def _figures(entries: Mapping[str, Any], counts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of one cache from its entries and its use."""
    return {
        "entries": entries.get("entries", 0),
        "size": entries.get("size") or 0,
        "hits": counts.get("hits__sum") or 0,
        "misses": counts.get("misses__sum") or 0,
        "seconds": counts.get("seconds__sum") or 0.0,
        "cost": (counts.get("cost_micros__sum") or 0) / MICROS,
    }


def prompt_caches(runs: QuerySet[Run]) -> list[dict[str, Any]]:
    """Return what providers' caches did in the last seven days, by model."""
    since = timezone.now() - PERIOD
    recent = runs.filter(started_at__gte=since, pk__gte=model_usage.oldest_run_id(since))
    rows = (
        AgentStep.objects.filter(run__in=recent.order_by().values("pk"), prompt_tokens__gt=0)
        .order_by()
        .values("run__model")
        .annotate(
            sent=Sum("prompt_tokens"), read=Sum("cache_read_tokens"), saved=Sum("cache_savings")
        )
        .order_by("-sent")[:MAX_MODELS]
    )
    return [{**row, "share": formatting.percent(row["read"] / row["sent"])} for row in rows]
