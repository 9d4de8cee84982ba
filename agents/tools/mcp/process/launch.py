"""Which programs may be started as MCP servers, and their environment.

Configuring such a server means running programs on this machine. What administrators can review
is the argv, so it must say what runs. A shell, or an interpreter with its program as an
argument, doesn't. For known launchers, only the options of `options` are accepted: others read
files, reach other hosts or open a container.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from agents.engine.errors import ToolError
from agents.engine.sentences import Sentence as _

from ..configuration.command_line import (
    FORBIDDEN_PROGRAMS,
    check_allowed,
    find_program,
    parse_launch,
    program_name,
)
from ..configuration.config import ServerConfig
from ..configuration.options import UnsafeCommand, is_pinned_image, is_pinned_package
from ..configuration.variables import inherited_variables, variable_problem

# Names under which one program acts as another.
MULTI_CALL = {"bunx": "bun", "uvx": "uv"}
LONG_ARGUMENTS_CHARS = 10_000
MAX_ARGUMENT_BYTES = 100_000
PATH_PATTERN = re.compile(r"(?:file://)?(/[^=:,;]*)")
# Mounts that expose the whole machine to a container, or the part that matters.
FORBIDDEN_MOUNTS = (
    "/boot",
    "/dev",
    "/etc",
    "/proc",
    "/root",
    "/run",
    "/sys",
    "/usr",
    "/var/lib/containerd",
    "/var/lib/containers",
    "/var/lib/docker",
    "/var/run",
)


class LaunchRefused(ToolError):
    """Raised with a reason; `field` is what is wrong with it."""

    message = _("This program can't be started as an MCP server.")

    def __init__(self, sentence: str, field: str = "command") -> None:
        super().__init__(sentence)
        self.field = field


def check_launch(config: ServerConfig) -> None:
    """Raise LaunchRefused with the first reason, if there is one."""
    for refusal in refusals(config):
        raise refusal


def refusals(config: ServerConfig) -> Iterator[LaunchRefused]:
    """Yield all reasons against starting it, each with its field."""
    checks = (_check_arguments, _check_variables, _check_folders, _check_program)
    for check in checks:
        try:
            check(config)
        except UnsafeCommand as error:
            yield LaunchRefused(
                _(
                    "%(server)s can't start: %(reason)s.",
                    server=repr(config.name),
                    reason=error,
                ),
                error.field,
            )


def resolve_argv(config: ServerConfig) -> tuple[str, ...]:
    """Return the exact argv, with the program's path resolved."""
    return (find_program(config), *config.args)


def build_environment(config: ServerConfig, folder: Path) -> dict[str, str]:
    """Return a server's whole environment: of ours, only how to reach the network."""
    return {
        **inherited_variables(),
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        **config.env,
    }


def launch_warnings(config: ServerConfig) -> list[str]:
    """Return warnings about what can be started but should be reviewed."""
    warnings: list[str] = []
    if sum(map(len, config.args)) > LONG_ARGUMENTS_CHARS:
        size = sum(map(len, config.args))
        warnings.append(
            _("The arguments are too long to review (%(size)s characters).", size=f"{size:,}")
        )
    try:
        launch = parse_launch(program_name(config.command), config.args)
    except UnsafeCommand:
        return warnings
    loose = [package for package in launch.packages if not is_pinned_package(package)]
    loose += [launch.image] if launch.image and not is_pinned_image(launch.image) else []
    for name in loose:
        warnings.append(
            _(
                "%(name)s has no pinned version, so a new release can change what runs.",
                name=name[:100],
            )
        )
    return warnings


def _check_arguments(config: ServerConfig) -> None:
    hidden = [os.path.realpath(path) for path in config.sandbox.hidden]
    for number, arg in enumerate(config.args, 1):
        if len(arg.encode(errors="replace")) > MAX_ARGUMENT_BYTES:
            limit = f"{MAX_ARGUMENT_BYTES:,}"
            raise UnsafeCommand(
                _("item %(n)s is longer than %(limit)s bytes", n=number, limit=limit), "args"
            )
        for path in PATH_PATTERN.findall(arg):
            if _is_within(path, hidden):
                raise UnsafeCommand(
                    _("%(path)s is inside this server's data folder", path=repr(path)), "args"
                )


def _check_variables(config: ServerConfig) -> None:
    for name in config.env:
        if problem := variable_problem(name):
            raise UnsafeCommand(problem, "env")


def _check_program(config: ServerConfig) -> None:
    program = find_program(config)
    if config.cwd and not (config.cwd.startswith("/") and Path(config.cwd).is_dir()):
        raise UnsafeCommand(_("the folder %(path)s doesn't exist", path=repr(config.cwd)))
    # A link can have any name, so its target is checked too.
    called = program_name(program)
    target = program_name(os.path.realpath(program))
    for name in dict.fromkeys([called, target]):
        check_allowed(name, FORBIDDEN_PROGRAMS)
        if name == target and MULTI_CALL.get(called) == target:
            continue  # which reads its own arguments by the name it was called
        launch = parse_launch(name, config.args)
        for mount in launch.mounts:
            source = mount.partition(":")[0]
            if not source.startswith(("/", ".", "~")):
                continue  # the engine's own volume
            blocked = (*config.sandbox.hidden, *FORBIDDEN_MOUNTS)
            is_blocked = not source.startswith("/") or overlaps(source, blocked)
            if is_blocked or source.endswith(".sock"):
                raise UnsafeCommand(
                    _(
                        "%(name)s can't mount %(path)s in a container",
                        name=name,
                        path=repr(source),
                    )
                )


def _check_folders(config: ServerConfig) -> None:
    for folder in config.folders:
        path = folder.path
        if not path.startswith("/") or not Path(path).exists():
            raise UnsafeCommand(
                _("the folder %(path)s doesn't exist", path=repr(path)), "folders"
            )
        if overlaps(path, config.sandbox.hidden):
            sentence = _(
                "%(path)s contains or is inside this server's data folder", path=repr(path)
            )
            raise UnsafeCommand(sentence, "folders")
        if _is_within(path, ("/proc", "/sys", "/dev")):
            raise UnsafeCommand(_("%(path)s is a system folder", path=repr(path)), "folders")


def overlaps(path: str, hidden: Sequence[str]) -> bool:
    """Whether the path contains something hidden, or is inside of it."""
    real = Path(os.path.realpath(path))
    hidden_paths = [Path(os.path.realpath(hidden_path)) for hidden_path in hidden]
    return any(
        real.is_relative_to(hidden_path) or hidden_path.is_relative_to(real)
        for hidden_path in hidden_paths
    )


def _is_within(path: str, folders: Sequence[str]) -> bool:
    real = Path(os.path.realpath(path))
    return any(real.is_relative_to(folder) for folder in folders)
