"""A name for a server that has none."""

import re
from ipaddress import ip_address
from pathlib import PurePosixPath, PureWindowsPath
from urllib.parse import urlsplit

from agents.tools.mcp.configuration.command_line import launch_target

from ..configuration.config import ServerConfig, slugify

NAME_AFFIXES = re.compile(
    r"^(?:mcp[-_]server[-_]|server[-_]|mcp[-_])|(?:[-_]mcp[-_]server|[-_]server|[-_]mcp)$"
)


def bare_program(command: str) -> str:
    """Return a program's name without its folder and the suffixes of Windows."""
    path = PureWindowsPath(command) if "\\" in command else PurePosixPath(command)
    return re.sub(r"\.(?:exe|cmd|bat)$", "", path.name, flags=re.IGNORECASE)


def url_path(url: str) -> str:
    try:
        return urlsplit(url).path
    except ValueError:
        return ""


def suggest_name(config: ServerConfig) -> str:
    """Return a name after the package or the host."""
    if config.url:
        try:
            host = urlsplit(config.url).hostname or ""
            ip_address(host)
        except ValueError:
            labels = [label for label in host.split(".") if label not in {"www", "mcp", "api"}]
            return slugify("".join(labels[-2:-1] or labels)) or "server"
        return "server"
    target = launch_target(config.command, config.args)
    last = re.split(r"[/\\]", target.rstrip("/"))[-1]
    plain = re.sub(r"(?<=.)[@=<>~!:].*$|\.(?:py|js|mjs|ts|jar|git)$", "", last)
    short = plain
    for _ in range(2):
        short = NAME_AFFIXES.sub("", short) or short
    return slugify(short) or "server"
