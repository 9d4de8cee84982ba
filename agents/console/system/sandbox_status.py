"""Describes how MCP programs are isolated from this server."""

import sys

from django.utils.translation import gettext_lazy as _

from agents.catalog import mcp_servers
from agents.models import McpServer
from agents.models.types import LazyText
from agents.tools.mcp.configuration.config import SandboxLevel, ServerConfig
from agents.tools.mcp.process import sandbox

LEVEL_TEXTS: dict[str, LazyText] = {
    "bubblewrap": _(
        "Bubblewrap: programs see their own folder, system programs and the folders "
        "you allow. They can't see this server's files, environment or processes."
    ),
    "landlock": _(
        "Landlock (version %(version)s): programs can use their own folder, system "
        "programs and the folders you allow. They can't read this server's files or "
        "environment. They can connect to local sockets."
    ),
    "user": _(
        "Separate user: programs run as system users without access to this server's files. "
        "They can read files that every user on this machine can read."
    ),
    "container": _(
        "Container: the container engine isolates this program. Options that weaken the "
        "isolation aren't allowed."
    ),
    "none": _(
        "None: programs run as this server's user and can read its secret key and database."
    ),
}
SIGNALS_ALLOWED = _("They can send signals to this server's processes.")
TRUNCATE_ALLOWED = _("They can truncate files that this server can write to.")
SANDBOX_OFF = _("ASHIATO_MCP_SANDBOX is off.")
ENABLE_ADVICE = _("Set ASHIATO_MCP_SANDBOX to auto.")
INSTALL_ADVICE = _("Install bubblewrap, or use a kernel with Landlock (Linux 5.13 or later).")
LIMITS = _(
    "Limits per program, including everything it starts: %(limits)s. Measured every second."
)
NO_LIMITS = _("Programs have no memory or CPU time limits.")
NOT_MEASURED = _("On this system, only the size of files is limited.")
MIN_SCOPED_VERSION = 6
MIN_TRUNCATE_VERSION = 3


def general_level() -> SandboxLevel:
    """Return the isolation of programs that don't run in a container."""
    policy = mcp_servers.sandbox_policy()
    return "none" if policy.mode == "off" else sandbox.available_level(policy.levels)


def advice() -> str:
    """Return what to do if there is no isolation."""
    return str(ENABLE_ADVICE if mcp_servers.sandbox_policy().mode == "off" else INSTALL_ADVICE)


def describe_config(config: ServerConfig) -> str:
    return describe_level(sandbox.isolation_level(config))


def describe_level(level: SandboxLevel) -> str:
    """Describe a level, including what an old kernel leaves open."""
    version = sandbox.landlock_version() if level == "landlock" else 0
    sentences = [str(LEVEL_TEXTS[level]) % {"version": version}]
    if level == "landlock" and version < MIN_TRUNCATE_VERSION:
        sentences.append(str(TRUNCATE_ALLOWED))
    if level == "landlock" and version < MIN_SCOPED_VERSION:
        sentences.append(str(SIGNALS_ALLOWED))
    if level == "none" and mcp_servers.sandbox_policy().mode == "off":
        sentences.append(str(SANDBOX_OFF))
    return " ".join(sentences)


def describe_limits(server: McpServer | None = None) -> str:
    """Describe what a program may use, and how that is enforced."""
    limits = mcp_servers.child_limits(server or McpServer())
    values = {
        _("%(count)s MB of memory"): limits.memory_mb,
        _("%(count)s s of CPU time in 5 minutes"): limits.cpu_seconds,
        _("%(count)s MB per file"): limits.file_mb,
        _("%(count)s processes"): limits.processes,
    }
    texts = [str(text) % {"count": f"{limit:,}"} for text, limit in values.items() if limit]
    if not texts:
        return str(NO_LIMITS)
    sentence = str(LIMITS) % {"limits": ", ".join(texts)}
    return sentence if sys.platform == "linux" else f"{sentence} {NOT_MEASURED}"
