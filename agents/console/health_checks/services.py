"""Checks of what agents use: models, MCP servers, databases, sandbox and media."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

from django.conf import settings
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.catalog import model_setups
from agents.catalog.agent_factory import CIRCUITS
from agents.engine.loop import StopReason
from agents.media import ffmpeg
from agents.models import Agent, DatabaseConnection, McpServer, Run
from agents.runs.engine_messages import translate

from .. import sandbox_status
from .check import HealthCheck
from .processes import Processes

MAX_NAMES = 6
FAILING_PERIOD = timedelta(hours=1)
MIN_FAILURES = 3
MAX_RECENT_RUNS = 1_000


def check_models() -> HealthCheck:
    """Check the models that agents use: their setup and circuits."""
    what, page = _("Models"), reverse("admin:agents_languagemodel_changelist")
    agents = Agent.objects.filter(enabled=True)
    rows = model_setups.model_rows()
    names = sorted({name for agent in agents for name in model_setups.model_names(agent, rows)})
    if not names:
        return HealthCheck(what=what, now=_("No agent is enabled."))
    if wrong := [
        str(error) for name in names if (error := model_setups.configuration_error(name, rows))
    ]:
        now = " ".join(map(translate, wrong))
        advice = _("Fix their settings, or choose other models for the agents.")
        return HealthCheck(what=what, now=now, advice=advice, page=page)
    few = ", ".join(names[:MAX_NAMES]) + (" …" if len(names) > MAX_NAMES else "")
    out = {state.key for state in CIRCUITS.state() if state.state != "closed"}
    failing = _failing_models(names)
    if broken := [name for name in names if f"model:{name}" in out or name in failing]:
        now = _("Failing: %(names)s.") % {"names": ", ".join(broken)}
        advice = _("Check the provider's status, then try again.")
        return HealthCheck(what=what, now=now, advice=advice, page=page)
    return HealthCheck(what=what, now=few, page=page)


def _failing_models(names: Sequence[str]) -> set[str]:
    """Return the models whose latest runs all failed.

    By the runs, because a circuit breaker knows only the calls of its own process.
    """
    recent = Run.objects.executed().filter(
        started_at__gte=timezone.now() - FAILING_PERIOD, model__in=names
    )
    ended = recent.exclude(status__in=Run.LIVE).order_by("-pk")
    latest: dict[str, list[bool]] = {}
    for model, status, reason in ended.values_list("model", "status", "stopped_reason")[
        :MAX_RECENT_RUNS
    ]:
        is_failed = status == Run.Status.FAILED and reason == StopReason.ERROR
        latest.setdefault(model, []).append(is_failed)
    return {
        model
        for model, failures in latest.items()
        if len(failures) >= MIN_FAILURES and all(failures[:MIN_FAILURES])
    }


def check_circuits() -> HealthCheck:
    what, page = _("Circuit breakers"), reverse("admin:agents_circuits")
    states = CIRCUITS.state()
    if labels := [state.label for state in states if state.state != "closed"]:
        names = dict.fromkeys(label.partition(":")[2] or label for label in labels)
        now = _("Failing: %(names)s.") % {"names": ", ".join(names)}
        advice = _("Calls are paused for a while, then retried automatically.")
        return HealthCheck(what=what, now=now, advice=advice, page=page)
    return HealthCheck(what=what, now=_("All healthy."), page=page)


def check_mcp_servers(processes: Processes = ()) -> HealthCheck:
    what, page = _("MCP servers"), reverse("admin:agents_mcpserver_changelist")
    servers = McpServer.objects.filter(enabled=True)
    failed = servers.filter(state=McpServer.State.FAILED)
    if names := list(failed.values_list("name", flat=True)):
        now = _("Failing: %(names)s.") % {"names": ", ".join(names)}
        advice = _("Test their connections.")
        return HealthCheck(what=what, now=now, advice=advice, page=page)
    now = _("All healthy.") if servers.exists() else _("None configured.")
    running = Counter[str]()
    for process in processes:
        running.update(process.mcp_instances)
    if running:
        counts = ", ".join(f"{name} {count}" for name, count in sorted(running.items()))
        instances = _("Running instances: %(counts)s.") % {"counts": counts}
        now = f"{now} {instances}"
    return HealthCheck(what=what, now=now, page=page)


def check_databases() -> HealthCheck:
    what, page = _("Databases"), reverse("admin:agents_databaseconnection_changelist")
    rows = DatabaseConnection.objects.filter(enabled=True)
    failed = rows.filter(state=DatabaseConnection.State.FAILED)
    if names := list(failed.values_list("name", flat=True)):
        now = _("Failing: %(names)s.") % {"names": ", ".join(names)}
        return HealthCheck(what=what, now=now, advice=_("Test their connections."), page=page)
    now = _("All healthy.") if rows.exists() else _("None configured.")
    return HealthCheck(what=what, now=now, page=page)


def check_sandbox() -> HealthCheck:
    """Check the sandbox that keeps MCP programs from the secret key and the database."""
    what, level = _("MCP sandbox"), sandbox_status.general_level()
    has_programs = McpServer.objects.filter(enabled=True, transport="stdio").exists()
    advice = sandbox_status.advice() if level == "none" and has_programs else ""
    now = f"{sandbox_status.describe_level(level)} {sandbox_status.describe_limits()}"
    return HealthCheck(what=what, now=now, advice=advice)


def check_media() -> HealthCheck:
    """Say what can be done with sound, images and video; nothing of it is required."""
    environment, missing = settings.ENVIRONMENT, _("not configured")
    local = "faster-whisper" if environment.whisper_model else missing
    found = {
        _("Transcription"): environment.transcription_model or local,
        _("Voice"): environment.speech_model or _("the browser's"),
        _("Image generation"): environment.image_model or missing,
        _("Image description"): environment.vision_model or missing,
        _("Video"): "ffmpeg" if ffmpeg.executable() else _("ffmpeg isn't installed"),
    }
    now = " · ".join(f"{what}: {which}" for what, which in found.items())
    return HealthCheck(what=_("Sound, images and video"), now=now)
