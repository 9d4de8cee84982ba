"""How far MCP servers that are programs are kept apart from this server, in sentences."""

from django.utils.translation import gettext_lazy as _

from agents.catalog import mcp_servers
from agents.tools.mcp import sandbox
from agents.tools.mcp.config import Level, ServerConfig

SENTENCES: dict[str, str] = {
    "bubblewrap": _(
        "Bubblewrap: programs see their own folder, system programs and the folders you open. "
        "They can't see this server's files, environment or processes."
    ),
    "landlock": _(
        "Landlock (version %(version)s): programs can use their own folder, system programs "
        "and the folders you open. They can't read this server's files or environment. They "
        "can connect to local sockets."
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
SIGNALS = _("They can send signals to this server's processes.")
TRUNCATE = _("They can truncate files that this server can write to.")
SWITCHED_OFF = _("ASHIATO_MCP_SANDBOX is off.")
SWITCH_ON = _("Set ASHIATO_MCP_SANDBOX to auto.")
ADVICE = _("Install bubblewrap, or use a kernel with Landlock (Linux 5.13 or later).")
SCOPED_SINCE, TRUNCATE_SINCE = 6, 3


def general_level() -> Level:
    """What is in force for programs that no container engine runs."""
    policy = mcp_servers.sandbox()
    return "none" if policy.mode == "off" else sandbox.general_level(policy.levels)


def advice() -> str:
    """What to do where nothing is in force."""
    return str(SWITCH_ON if mcp_servers.sandbox().mode == "off" else ADVICE)


def sentence(config: ServerConfig) -> str:
    return about(sandbox.level(config))


def about(level: Level) -> str:
    """What a level means, with what an old kernel leaves open."""
    version = sandbox.landlock_version() if level == "landlock" else 0
    said = [str(SENTENCES[level]) % {"version": version}]
    if level == "landlock" and version < TRUNCATE_SINCE:
        said.append(str(TRUNCATE))
    if level == "landlock" and version < SCOPED_SINCE:
        said.append(str(SIGNALS))
    if level == "none" and mcp_servers.sandbox().mode == "off":
        said.append(str(SWITCHED_OFF))
    return " ".join(said)
