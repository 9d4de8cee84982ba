"""How a server is started or reached, from its row."""

from dataclasses import replace
from pathlib import Path
from typing import cast

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.utils.translation import gettext as _

from agents.db.installation import configured
from agents.models import McpServer
from agents.models.types import AnyUser
from agents.tools.mcp.configuration.config import (
    ChildLimits,
    ConfigProblem,
    Sandbox,
    ServerConfig,
    Transport,
    find_problems,
    read_folders,
)
from agents.tools.mcp.process import sandbox as mcp_sandbox
from agents.tools.mcp.process.launch import refusals
from agents.tools.mcp.sign_in import SignInRequired

from . import sign_ins

STDIO_PERMISSION = "agents.use_stdio_servers"


def server_config(server: McpServer) -> ServerConfig:
    return ServerConfig(
        name=server.name,
        transport=cast(Transport, server.transport),
        command=server.command,
        args=tuple(server.args),
        env=server.env.reveal(),
        folders=read_folders(server.folders.splitlines()),
        home=str(home_folder(server.pk)) if server.pk else "",
        sandbox=sandbox_policy(),
        limits=child_limits(server),
        url=server.url,
        headers=server.headers.reveal(),
        connect_timeout=server.connect_timeout,
        call_timeout=server.timeout,
        revision=server.files_deleted_at.isoformat() if server.files_deleted_at else "",
    )


def sandbox_policy() -> Sandbox:
    """Return how programs are isolated here, and what none of them can see."""
    hidden = [settings.DATA_DIR, settings.BASE_DIR / ".env", settings.ENVIRONMENT.trace_file]
    return Sandbox(
        mode=settings.ENVIRONMENT.mcp_sandbox,
        hidden=tuple(str(path.absolute()) for path in hidden if path),
    )


def child_limits(server: McpServer) -> ChildLimits:
    """Return what a program may use: its own limits, or the installation's."""
    return ChildLimits(
        memory_mb=server.memory_mb or configured.PROGRAM_MEMORY.value,
        cpu_seconds=server.cpu_seconds or configured.PROGRAM_CPU.value,
        file_mb=configured.PROGRAM_FILE.value,
        processes=configured.PROGRAM_PROCESSES.value,
    )


def home_folder(pk: int) -> Path:
    """Return a server's persistent folder, which also holds npx and uvx caches."""
    return settings.DATA_DIR.absolute() / "mcp" / str(pk)


def validate(config: ServerConfig, user: AnyUser) -> list[ConfigProblem]:
    """Return all reasons why this user can't save, test or import this server."""
    problems = find_problems(config)
    if config.transport != "stdio":
        return problems
    if not user.has_perm(STDIO_PERMISSION):
        sentence = _(
            "You don't have permission to set up servers that run programs on this machine."
        )
        return [_problem("transport", sentence), *problems]
    refused = [*refusals(config), *mcp_sandbox.refusals(config)] if config.command else []
    return [*problems, *(_problem(refusal.field, str(refusal)) for refusal in refused)]


def _problem(field: str, sentence: str) -> ConfigProblem:
    return ConfigProblem(field=field, sentence=sentence, full_sentence=sentence)


def permitted_config(server: McpServer, user: AnyUser) -> ServerConfig:
    """Return how this user connects, with the sign-in that they would use.

    Raises PermissionDenied, and SignInRequired.
    """
    config = server_config(server)
    require_valid(config, user)
    if not server.sign_in:
        return config
    owner = sign_ins.owner(server, user)
    sign_in = sign_ins.find(server, owner.pk if owner else None)
    if sign_in is None:
        raise SignInRequired(server.name, is_shared=owner is None)
    return replace(config, sign_in=sign_in)


def require_valid(config: ServerConfig, user: AnyUser) -> None:
    if problems := validate(config, user):
        raise PermissionDenied(" ".join(map(str, problems)))
