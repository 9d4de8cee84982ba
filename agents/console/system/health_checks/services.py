"""Checks of what agents use: models, MCP servers, databases, sandbox and media."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.catalog.agent_factory import CIRCUITS
from agents.catalog.language_models import model_setups
from agents.db.installation import default_models
from agents.db.sentences import translate
from agents.engine.loop import StopReason
from agents.knowledge.media import ffmpeg
from agents.models import Agent, DatabaseConnection, McpServer, Run

from .. import sandbox_status
from .check import HealthCheck
from .processes import Processes

MAX_NAMES = 6
FAILING_PERIOD = timedelta(hours=1)
MIN_FAILURES = 3
MAX_RECENT_RUNS = 1_000


def check_models() -> HealthCheck:
    """Check the models that agents use: their setup and circuits."""
    name = _("Models")
    page = reverse("admin:agents_languagemodel_changelist")
    agents = Agent.objects.filter(enabled=True)
    rows = model_setups.model_rows()
    models = sorted({m for agent in agents for m in model_setups.model_names(agent, rows)})
    if not models:
        return HealthCheck(name=name, status=_("No agent is enabled."))
    errors = [model_setups.configuration_error(model, rows) for model in models]
    if any(errors):
        status = " ".join(translate(str(error)) for error in errors if error)
        advice = _("Fix their settings, or choose other models for the agents.")
        return HealthCheck(name=name, status=status, advice=advice, page=page)
    paused = {state.key for state in CIRCUITS.state() if state.state != "closed"}
    # A circuit breaker knows only the calls of its own process, so the latest runs count, too.
    recent = (
        Run.objects.executed()
        .without_experiments()
        .filter(started_at__gte=timezone.now() - FAILING_PERIOD, model__in=models)
    )
    ended = recent.exclude(status__in=Run.LIVE).order_by("-pk")
    latest_failures: dict[str, list[bool]] = {}
    for model, run_status, reason in ended.values_list("model", "status", "stopped_reason")[
        :MAX_RECENT_RUNS
    ]:
        is_failed = run_status == Run.Status.FAILED and reason == StopReason.ERROR
        latest_failures.setdefault(model, []).append(is_failed)
    failing = {
        model
        for model, failures in latest_failures.items()
        if len(failures) >= MIN_FAILURES and all(failures[:MIN_FAILURES])
    }
    if broken := [model for model in models if f"model:{model}" in paused or model in failing]:
        status = _("Failing: %(names)s.") % {"names": ", ".join(broken)}
        advice = _("Check the provider's status, then try again.")
        return HealthCheck(name=name, status=status, advice=advice, page=page)
    status = ", ".join(models[:MAX_NAMES]) + (" …" if len(models) > MAX_NAMES else "")
    return HealthCheck(name=name, status=status, page=page)


def check_circuits() -> HealthCheck:
    name = _("Circuit breakers")
    page = reverse("admin:agents_circuits")
    states = CIRCUITS.state()
    if labels := [state.label for state in states if state.state != "closed"]:
        names = dict.fromkeys(label.partition(":")[2] or label for label in labels)
        status = _("Failing: %(names)s.") % {"names": ", ".join(names)}
        advice = _("Calls are paused for a while, then retried automatically.")
        return HealthCheck(name=name, status=status, advice=advice, page=page)
    return HealthCheck(name=name, status=_("All healthy."), page=page)


def check_connections(
    name: str, page: str, failing: Sequence[str], *, are_configured: bool
) -> HealthCheck:
    """Check MCP servers or databases, by the names of those that fail."""
    if failing:
        status = _("Failing: %(names)s.") % {"names": ", ".join(failing)}
        advice = _("Test their connections.")
        return HealthCheck(name=name, status=status, advice=advice, page=page)
    status = _("All healthy.") if are_configured else _("None configured.")
    return HealthCheck(name=name, status=status, page=page)


def check_mcp_servers(processes: Processes = ()) -> HealthCheck:
    servers = McpServer.objects.filter(enabled=True)
    failed = servers.filter(state=McpServer.State.FAILED)
    check = check_connections(
        _("MCP servers"),
        reverse("admin:agents_mcpserver_changelist"),
        list(failed.values_list("name", flat=True)),
        are_configured=servers.exists(),
    )
    running = Counter[str]()
    for process in processes:
        running.update(process.mcp_instances)
    if check.is_good and running:
        counts = ", ".join(f"{name} {count}" for name, count in sorted(running.items()))
        instances = _("Running instances: %(counts)s.") % {"counts": counts}
        return replace(check, status=f"{check.status} {instances}")
    return check


def check_databases() -> HealthCheck:
    rows = DatabaseConnection.objects.filter(enabled=True)
    failed = rows.filter(state=DatabaseConnection.State.FAILED)
    return check_connections(
        _("Databases"),
        reverse("admin:agents_databaseconnection_changelist"),
        list(failed.values_list("name", flat=True)),
        are_configured=rows.exists(),
    )


def check_sandbox() -> HealthCheck:
    """Check the sandbox that keeps MCP programs from the secret key and the database."""
    level = sandbox_status.general_level()
    has_programs = McpServer.objects.filter(enabled=True, transport="stdio").exists()
    advice = sandbox_status.advice() if level == "none" and has_programs else ""
    status = f"{sandbox_status.describe_level(level)} {sandbox_status.describe_limits()}"
    return HealthCheck(name=_("MCP sandbox"), status=status, advice=advice)


def check_media() -> HealthCheck:
    """Say what can be done with sound, images and video; nothing of it is required."""
    providers = {
        str(setting.label): setting.display(setting.model)
        for setting in default_models.MODELS.values()
        if setting is not default_models.EMBEDDING
    }
    video = "ffmpeg" if ffmpeg.executable() else _("ffmpeg isn't installed")
    providers[_("Video")] = video
    status = " · ".join(f"{purpose}: {provider}" for purpose, provider in providers.items())
    return HealthCheck(name=_("Sound, images and video"), status=status)
