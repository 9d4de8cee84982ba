"""Isolates MCP programs from the product.

A server has its own folder, the system's programs and libraries, its launcher's installation,
folders that an administrator allows, and the network. Everything else is hidden, above all our
data folder and memory. See docs/decisions.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from agents.engine.sentences import Sentence as _
from agents.tools.sandbox import bubblewrap, confined_argv, exclude_hidden, landlock_abi

from ..configuration import command_line
from ..configuration.config import SandboxLevel, ServerConfig
from ..configuration.variables import certificate_paths
from . import launch

SUBFOLDERS = ("home", "work", "tmp")  # of a server's folder
# User ids that no distribution assigns, so that servers are isolated from each other.
FIRST_UID = 60_706
UID_COUNT = 478
USER_HOMES = Path("/var/lib/ashiato-mcp")

SYSTEM_PATHS = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/snap",
    "/run/current-system",
    "/sys/fs/cgroup",
    "/sys/devices/system/cpu",
    "/var/lib/ca-certificates",
)
# Not all of /etc, which also has keys and settings of other programs.
ETC_PATHS = (
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "fonts",
    "gai.conf",
    "gitconfig",  # Git ends with an error if it can't read it
    "group",
    "host.conf",
    "hosts",
    "java",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "localtime",
    "lsb-release",
    "machine-id",
    "mime.types",
    "node",
    "npmrc",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "pip.conf",
    "pki/ca-trust",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "protocols",
    "resolv.conf",
    "services",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
    "uv",
)
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
# Too broad: a program in there doesn't get access to the whole folder.
BROAD_FOLDERS = (
    "/",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/media",
    "/mnt",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/srv",
    "/sys",
    "/tmp",
    "/Users",
    "/var",
    "/var/lib",
    "/var/tmp",
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
SANDBOX_MISSING = _(
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
        "bubblewrap": lambda: bubblewrap.works(SYSTEM_PATHS),
        "landlock": lambda: landlock_abi() > 0,
        "user": lambda: os.name == "posix" and os.geteuid() == 0,
    }
    return next((level for level in levels if works[level]()), "none")


def landlock_version() -> int:
    return landlock_abi()


def refusals(config: ServerConfig) -> Iterator[launch.LaunchRefused]:
    """Yield why it can't be started: isolation is required, and there is none."""
    if config.sandbox.mode == "require" and isolation_level(config) == "none":
        yield launch.LaunchRefused(
            _(
                "%(server)s can't start: %(reason)s.",
                server=repr(config.name),
                reason=SANDBOX_MISSING,
            )
        )


def home_path(config: ServerConfig) -> Path:
    """Return where its persistent folder is; another user can't access our data folder."""
    home = Path(config.home)
    return user_home(home) if isolation_level(config) == "user" else home


def sandbox_argv(config: ServerConfig, folder: Path) -> Sequence[str]:
    """Return the argv with its sandbox, which can write to the server's folder."""
    for refusal in refusals(config):
        raise refusal
    argv: Sequence[str] = launch.resolve_argv(config)
    match isolation_level(config):
        case "bubblewrap":
            # Each subfolder by itself: what is mounted can't be replaced by a link, which the
            # next process of the same server would mount instead.
            subfolders = [folder / name for name in SUBFOLDERS]
            argv = bubblewrap.argv(
                argv,
                readable=_readable_paths(config),
                writable=_writable_paths(config, *subfolders),
                temporary_folder=str(folder / "tmp"),
                cwd=config.cwd or str(folder / "work"),
            )
        case "landlock":
            argv = confined_argv(
                argv,
                readable=["/proc", *_readable_paths(config)],
                writable=[*_writable_paths(config, folder), *DEVICES],
            )
        case "user":
            mark = hashlib.sha256(f"{config.home}\0{config.name}".encode()).digest()
            uid = FIRST_UID + int.from_bytes(mark[:4]) % UID_COUNT
            _chown_tree(folder, uid)
            argv = confined_argv(argv, uid=uid)
    return argv


# Files


def _readable_paths(config: ServerConfig) -> list[str]:
    """Return what it can read, by name and by resolved path."""
    paths = [*map(Path, SYSTEM_PATHS), *(Path("/etc", name) for name in ETC_PATHS)]
    # A launcher starts programs by name.
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if folder.startswith("/"):
            paths += _installation_paths(Path(folder, "program"))
    paths += _launcher_paths(config)
    paths += [Path(path) for path in certificate_paths() if path.startswith("/")]
    visible = [p for path in paths for p in exclude_hidden(path, config.sandbox.hidden)]
    allowed = [Path(folder.path) for folder in config.folders if not folder.is_writable]
    return _with_real_paths([*visible, *allowed])


def _writable_paths(config: ServerConfig, *folders: Path) -> list[str]:
    allowed = [Path(folder.path) for folder in config.folders if folder.is_writable]
    cwd = [Path(config.cwd)] if config.cwd else []
    return _with_real_paths([*allowed, *cwd, *folders])


def _with_real_paths(paths: Iterable[Path]) -> list[str]:
    names = [name for path in paths for name in (str(path), os.path.realpath(path))]
    return list(dict.fromkeys(names))


def _launcher_paths(config: ServerConfig) -> Iterator[Path]:
    """Yield the program's installation, its interpreter's, and its script's folder."""
    yield from _program_paths(Path(launch.resolve_argv(config)[0]), MAX_LINKS)
    for script in command_line.script_paths(config):
        path = Path(script)
        yield path
        if path.is_dir():
            continue
        parents = list(path.parents)[:MAX_PARENTS]
        project = next((p for p in parents if (p / "package.json").is_file()), path.parent)
        if not _is_broad(project):
            yield project
        # Its dependencies are beside it, not below.
        yield from [p for p in path.parents if p.name == "node_modules"][-1:]


def _program_paths(program: Path, max_links: int) -> Iterator[Path]:
    """Yield each path from a link to its target, with its installation."""
    if not max_links:
        return
    yield program
    yield from _installation_paths(program)
    if program.is_symlink():
        target = program.parent / program.readlink()
        yield from _program_paths(Path(os.path.normpath(target)), max_links - 1)
    elif interpreter := _interpreter(program):
        yield from _program_paths(interpreter, max_links - 1)


def _installation_paths(program: Path) -> Iterator[Path]:
    folder = program.parent
    root = folder.parent if folder.name in BIN_FOLDERS else folder
    if root.name in PARTIAL_FOLDERS:
        yield from (root / name for name in PARTIAL_FOLDERS[root.name])
    elif not _is_broad(root):
        yield root
        # A virtual environment names the Python that it is based on.
        try:
            lines = (root / "pyvenv.cfg").read_text(errors="replace").splitlines()
        except OSError:
            return
        for line in lines:
            name, _, value = line.partition("=")
            if name.strip() == "home" and value.strip().startswith("/"):
                yield from _installation_paths(Path(value.strip(), "python"))
    elif not _is_broad(folder):
        yield folder


def _interpreter(program: Path) -> Path | None:
    """Return the interpreter in a script's first line."""
    try:
        with program.open("rb") as file:
            line = file.readline(MAX_SHEBANG_BYTES)
    except OSError:
        return None
    if not line.startswith(b"#!"):
        return None
    argv = [arg for arg in os.fsdecode(line[2:]).split() if not arg.startswith("-")]
    if argv and Path(argv[0]).name == "env":
        argv = [path for name in argv[1:2] if (path := shutil.which(name))]
    return Path(argv[0]) if argv and argv[0].startswith("/") else None


def _is_broad(path: Path) -> bool:
    """Whether it is a home, or a folder that contains everything else."""
    real = Path(os.path.realpath(path))
    homes = {Path.home(), Path(os.path.realpath(Path.home()))}
    return (
        str(real) in BROAD_FOLDERS or real in homes or str(real.parent) in {"/home", "/Users"}
    )


# Another user


def user_home(home: Path) -> Path:
    return USER_HOMES / hashlib.sha256(os.fsencode(home)).hexdigest()[:16]


def _chown_tree(folder: Path, uid: int) -> None:
    # By descriptor: another process of the server could replace a folder on the way by a link.
    for _path, folders, files, folder_fd in os.fwalk(folder, follow_symlinks=False):
        for name in (".", *folders, *files):
            with suppress(FileNotFoundError):
                os.chown(name, uid, uid, dir_fd=folder_fd, follow_symlinks=False)
