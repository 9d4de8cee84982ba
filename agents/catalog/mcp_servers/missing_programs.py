"""The programs that gallery servers need and this machine lacks, and how to install them."""

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass

# By package manager: the first one that this machine has is used.
NODE = (
    ("apt-get", "apt-get install -y npm"),
    ("dnf", "dnf install -y npm"),
    ("apk", "apk add npm"),
    ("pacman", "pacman -S --noconfirm npm"),
    ("brew", "brew install node"),
)
UV_SCRIPT = "curl -LsSf https://astral.sh/uv/install.sh | env UV_INSTALL_DIR=/usr/local/bin sh"
INSTALLS = {
    "npx": NODE,
    "node": NODE,
    "uvx": (("brew", "brew install uv"), ("curl", UV_SCRIPT)),
}
OF_ITS_USER = {"brew"}  # which refuses root


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingProgram:
    name: str
    install: str = ""  # the command, if it is known


def missing_programs(commands: Iterable[str]) -> dict[str, MissingProgram]:
    """Return the programs that a server couldn't start, by name."""
    names = {command for command in commands if command}
    return {
        name: MissingProgram(name=name, install=_install_command(name))
        for name in sorted(names)
        if not shutil.which(name)
    }


def _install_command(name: str) -> str:
    for tool, command in INSTALLS.get(name, ()):
        if shutil.which(tool):
            needs_root = tool not in OF_ITS_USER and os.geteuid() != 0
            return _as_root(command) if needs_root else command
    return ""


def _as_root(command: str) -> str:
    """Only what installs runs as root, not what downloads the script."""
    download, pipe, install = command.rpartition("| ")
    return f"{download}{pipe}sudo {install}"
