"""Isolates MCP programs from the product.

A server has its own folder, the system's programs and libraries, its launcher's installation,
folders that an administrator allows, and the network. Everything else is hidden, above all our
data folder and memory. See docs/decisions.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from agents.tools.sandbox import child, exclude_hidden, landlock_abi

from . import command_line, launch
from .config import SandboxLevel, ServerConfig
from .variables import certificate_paths

PROBE_TIMEOUT_SECONDS = 10.0
PARTS = ("home", "work", "tmp")  # of a server's folder
# User ids that no distribution assigns, so that servers are isolated from each other.
FIRST_UID, UID_COUNT = 60_706, 478
USER_HOMES = Path("/var/lib/ashiato-mcp")

SYSTEM_PATHS = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/snap"),
    *("/run/current-system", "/sys/fs/cgroup", "/sys/devices/system/cpu"),
    *("/var/lib/ca-certificates",),
)
# Not all of /etc, which also has keys and settings of other programs.
ETC_PATHS = (
    *("alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "fonts"),
    *("gai.conf", "group", "host.conf", "hosts", "java", "ld.so.cache", "ld.so.conf"),
    *("ld.so.conf.d", "locale.alias", "localtime", "lsb-release", "machine-id", "mime.types"),
    *("nsswitch.conf", "os-release", "passwd", "pki/ca-trust", "pki/tls/cert.pem"),
    *("pki/tls/certs", "protocols", "resolv.conf", "services", "ssl/cert.pem", "ssl/certs"),
    *("ssl/openssl.cnf", "terminfo", "timezone", "npmrc", "pip.conf", "uv", "node"),
    # Git ends with an error if it can't read it.
    "gitconfig",
)
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
# Too broad: a program in there doesn't get access to the whole folder.
BROAD_FOLDERS = (
    *("/", "/boot", "/dev", "/etc", "/home", "/media", "/mnt", "/opt", "/proc", "/root"),
    *("/run", "/srv", "/sys", "/tmp", "/Users", "/var", "/var/lib", "/var/tmp"),
)
BIN_FOLDERS = {"bin", "sbin", "shims", "Scripts", ".bin"}
# Folders with programs next to a user's own files and keys.
PARTIAL_FOLDERS = {
    ".local": ("bin", "lib", "share/uv", "share/pipx", "share/mise", "share/fnm", "pipx"),
    ".cargo": ("bin",),
}
MAX_LINKS = 16
MAX_SHEBANG_BYTES = 256
MAX_PARENTS = 4
SANDBOX_MISSING = (
    "ASHIATO_MCP_SANDBOX is 'require', but neither bubblewrap nor Landlock works on this server"
)


def isolation_level(config: ServerConfig) -> SandboxLevel:
    """Return this server's isolation; may have to probe first, which takes a moment."""
    if config.sandbox.mode == "off":
        return "none"
    if command_line.is_container(config):
        return "container"
    return available_level(config.sandbox.levels)


def available_level(
    levels: Iterable[SandboxLevel] = ("bubblewrap", "landlock", "user"),
) -> SandboxLevel:
    """Return the first of these that works on this machine."""
    works: dict[SandboxLevel, Callable[[], bool]] = {
        "bubblewrap": _has_bubblewrap,
        "landlock": _has_landlock,
        "user": _is_root,
    }
    return next((each for each in levels if works[each]()), "none")


def landlock_version() -> int:
    return landlock_abi()


def refusals(config: ServerConfig) -> Iterator[launch.LaunchRefused]:
    """Yield why it can't be started: isolation is required, and there is none."""
    if config.sandbox.mode == "require" and isolation_level(config) == "none":
        yield launch.LaunchRefused(f"{config.name!r} can't start: {SANDBOX_MISSING}.")


def home_path(config: ServerConfig) -> Path:
    """Return where its persistent folder is; another user can't access our data folder."""
    home = Path(config.home)
    return user_home(home) if isolation_level(config) == "user" else home


def sandbox_argv(config: ServerConfig, folder: Path) -> tuple[str, ...]:
    """Return the argv with its sandbox, which can write to the server's folder."""
    for refusal in refusals(config):
        raise refusal
    argv = launch.resolve_argv(config)
    match isolation_level(config):
        case "bubblewrap":
            return (*_bubblewrap_args(config, folder), *argv)
        case "landlock":
            read, write = _readable_paths(config), _writable_paths(config, folder)
            return _confine_argv(argv, read=["/proc", *read], write=[*write, *DEVICES])
        case "user":
            uid = _server_uid(config)
            _chown_tree(folder, uid)
            return _confine_argv(argv, uid=uid)
    return argv


def _confine_argv(argv: tuple[str, ...], **policy: object) -> tuple[str, ...]:
    python = (sys.executable, "-I", "-S", child.__file__)
    return (*python, json.dumps(policy), *argv)


# Detection


@cache
def _has_bubblewrap() -> bool:
    """Whether bubblewrap is installed and allowed to create namespaces."""
    program, nothing = shutil.which("bwrap"), shutil.which("true")
    if not program or not nothing:
        return False
    binds = [word for path in SYSTEM_PATHS for word in ("--ro-bind-try", path, path)]
    try:
        tried = subprocess.run(
            [program, *NAMESPACE_ARGS, *binds, "--", nothing],
            env={},  # a probe needs no keys
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return tried.returncode == 0


@cache
def _has_landlock() -> bool:
    return landlock_abi() > 0


def _is_root() -> bool:
    return os.name == "posix" and os.geteuid() == 0


# Bubblewrap

NAMESPACE_ARGS = (
    *("--unshare-all", "--share-net", "--die-with-parent", "--cap-drop", "ALL"),
    *("--proc", "/proc", "--dev", "/dev"),
)


def _bubblewrap_args(config: ServerConfig, folder: Path) -> Iterator[str]:
    yield shutil.which("bwrap") or "bwrap"
    yield from NAMESPACE_ARGS
    yield from ("--bind", str(folder / "tmp"), "/tmp")
    binds: dict[Path, str] = {}
    wanted = [(Path(path), "--ro-bind-try") for path in _readable_paths(config)]
    # Its folder in parts: what is mounted can't be replaced by a link, which the next process
    # of the same server would mount instead.
    parts = [folder / part for part in PARTS]
    wanted += [(Path(path), "--bind-try") for path in _writable_paths(config, *parts)]
    # Nested paths are mounted after their parents, or not at all if that would grant nothing
    # more: a link there leads to what is mounted under its own name.
    for path, way in sorted(wanted, key=lambda each: len(each[0].parts)):
        around = next((binds[parent] for parent in path.parents if parent in binds), "")
        if around not in (way, "--bind-try"):
            binds[path] = way
            yield from (way, str(path), str(path))
    yield from ("--chdir", config.cwd or str(folder / "work"), "--")


# Files


def _readable_paths(config: ServerConfig) -> list[str]:
    """Return what it can read, by name and by resolved path."""
    wanted = [*map(Path, SYSTEM_PATHS), *(Path("/etc", name) for name in ETC_PATHS)]
    wanted += _path_installations()
    wanted += _launcher_paths(config)
    wanted += [Path(path) for path in certificate_paths() if path.startswith("/")]
    opened = [Path(each.path) for each in config.folders if not each.is_writable]
    found = [path for each in wanted for path in exclude_hidden(each, config.sandbox.hidden)]
    return _with_real_paths([*found, *opened])


def _writable_paths(config: ServerConfig, *own: Path) -> list[str]:
    opened = [Path(each.path) for each in config.folders if each.is_writable]
    return _with_real_paths([*opened, *([Path(config.cwd)] if config.cwd else []), *own])


def _with_real_paths(paths: Iterable[Path]) -> list[str]:
    names = [name for path in paths for name in (str(path), os.path.realpath(path))]
    return list(dict.fromkeys(names))


def _path_installations() -> Iterator[Path]:
    """Yield the installations of PATH folders, because a launcher starts programs by name."""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if folder.startswith("/"):
            yield from _installation_paths(Path(folder, "program"))


def _launcher_paths(config: ServerConfig) -> Iterator[Path]:
    """Yield the program's installation, its interpreter's, and its script's folder."""
    yield from _program_paths(Path(launch.resolve_argv(config)[0]), MAX_LINKS)
    for script in command_line.script_paths(config):
        path = Path(script)
        yield path
        if path.is_dir():
            continue
        project = next(
            (p for p in _near_parents(path) if (p / "package.json").is_file()), path.parent
        )
        if not _is_broad(project):
            yield project
        # Its dependencies are beside it, not below.
        yield from [p for p in path.parents if p.name == "node_modules"][-1:]


def _near_parents(path: Path) -> list[Path]:
    return list(path.parents)[:MAX_PARENTS]


def _program_paths(program: Path, left: int) -> Iterator[Path]:
    """Yield each path from a link to its target, with its installation."""
    if not left:
        return
    yield program
    yield from _installation_paths(program)
    if program.is_symlink():
        target = program.parent / program.readlink()
        yield from _program_paths(Path(os.path.normpath(target)), left - 1)
    elif interpreter := _interpreter(program):
        yield from _program_paths(interpreter, left - 1)


def _installation_paths(program: Path) -> Iterator[Path]:
    folder = program.parent
    whole = folder.parent if folder.name in BIN_FOLDERS else folder
    if whole.name in PARTIAL_FOLDERS:
        yield from (whole / part for part in PARTIAL_FOLDERS[whole.name])
    elif not _is_broad(whole):
        yield whole
        yield from _venv_base_paths(whole)
    elif not _is_broad(folder):
        yield folder


def _venv_base_paths(whole: Path) -> Iterator[Path]:
    try:
        lines = (whole / "pyvenv.cfg").read_text(errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        name, _, value = line.partition("=")
        if name.strip() == "home" and value.strip().startswith("/"):
            yield from _installation_paths(Path(value.strip(), "python"))


def _interpreter(program: Path) -> Path | None:
    """Return the interpreter in a script's first line."""
    try:
        with program.open("rb") as file:
            first = file.readline(MAX_SHEBANG_BYTES)
    except OSError:
        return None
    if not first.startswith(b"#!"):
        return None
    words = [word for word in os.fsdecode(first[2:]).split() if not word.startswith("-")]
    if words and Path(words[0]).name == "env":
        words = [found for name in words[1:2] if (found := shutil.which(name))]
    return Path(words[0]) if words and words[0].startswith("/") else None


def _is_broad(path: Path) -> bool:
    """Whether it is a home, or a folder that contains everything else."""
    real = Path(os.path.realpath(path))
    homes = {Path.home(), Path(os.path.realpath(Path.home()))}
    return (
        str(real) in BROAD_FOLDERS or real in homes or str(real.parent) in {"/home", "/Users"}
    )


# Another user


def _server_uid(config: ServerConfig) -> int:
    mark = hashlib.sha256(f"{config.home}\0{config.name}".encode()).digest()
    return FIRST_UID + int.from_bytes(mark[:4]) % UID_COUNT


def user_home(home: Path) -> Path:
    return USER_HOMES / hashlib.sha256(os.fsencode(home)).hexdigest()[:16]


def _chown_tree(folder: Path, uid: int) -> None:
    # By descriptor: another process of the server could replace a folder on the way by a link.
    for _path, folders, files, folder_fd in os.fwalk(folder, follow_symlinks=False):
        for name in (".", *folders, *files):
            with suppress(FileNotFoundError):
                os.chown(name, uid, uid, dir_fd=folder_fd, follow_symlinks=False)
