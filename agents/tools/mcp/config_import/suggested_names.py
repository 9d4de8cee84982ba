"""A name for a server that has none."""

import re
from ipaddress import ip_address
from pathlib import PurePosixPath, PureWindowsPath
from urllib.parse import urlsplit

from agents.tools.mcp.command_line import launch_target

from ..config import ServerConfig, slugify

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
        return slugify(_site_name(config.url)) or "server"
    target = launch_target(config.command, config.args)
    last = re.split(r"[/\\]", target.rstrip("/"))[-1]
    plain = re.sub(r"(?<=.)[@=<>~!:].*$|\.(?:py|js|mjs|ts|jar|git)$", "", last)
    short = plain
    for _ in range(2):
        short = NAME_AFFIXES.sub("", short) or short
    return slugify(short) or "server"


def _site_name(url: str) -> str:
    try:
        host = urlsplit(url).hostname or ""
        ip_address(host)
    except ValueError:
        labels = [part for part in host.split(".") if part not in {"www", "mcp", "api"}]
        return labels[-2] if len(labels) > 1 else "".join(labels)
    return ""
