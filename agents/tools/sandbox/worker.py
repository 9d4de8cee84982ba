"""Kinds of child processes: what each may use, and how that is enforced on this machine."""

import json
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from . import child, system_calls

# Python, its packages and the system's libraries.
CODE_PATHS = (
    *dict.fromkeys((sys.prefix, sys.base_prefix, sys.exec_prefix)),
    *("/usr", "/lib", "/lib64", "/bin", "/opt", "/nix/store"),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/localtime", "/etc/mime.types"),
)
# Less than that for code of others: what an import needs.
LIBRARY_PATHS = (
    *dict.fromkeys(
        sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")
    ),
    f"{sys.base_prefix}/lib",
    *("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/nix/store"),
    *("/usr/share/zoneinfo", "/etc/ld.so.cache", "/etc/localtime", "/etc/mime.types"),
)
# From this version on, a file can't be cut short by its path.
MIN_FOREIGN_CODE_ABI = 3
DEVICES = ("/dev/null", "/dev/urandom", "/dev/random", "/dev/zero")
# Number libraries choose their code by these.
CPU_FACTS = ("/proc/cpuinfo", "/proc/meminfo", "/proc/self", "/sys/devices/system/cpu")
# The product may be installed below a folder with code, such as /opt, and its data with it.
_hidden: set[str] = set()
BASE_ENVIRONMENT = {"LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A kind of child process, and the most that one of them may use."""

    name: str
    # A Python file that is run by its path; without one, a request names another program.
    program: str = ""
    needs_packages: bool = True
    has_network: bool = False
    has_silent_sockets: bool = False  # local ones that can't connect
    readable: Sequence[str] = ()
    memory_bytes: int
    # Up to this it may raise its limit itself.
    max_memory_bytes: int = 0
    file_bytes: int = 0  # of each file it writes
    open_files: int = 64
    output_bytes: int = 2_000_000
    nice: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)
    # Modules of the product that it imports; they import only the standard library.
    modules: Sequence[ModuleType] = ()
    # It runs code that a model or a user wrote: without processes, threads, or a way to others.
    runs_foreign_code: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What one request may use besides its worker's code."""

    seconds: float
    cpu_seconds: float = 0.0  # of all its threads; as long as the request, if it isn't given
    max_cpu_seconds: float = 0.0  # up to this it may raise its limit itself
    readable: Sequence[str] = ()
    writable: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def landlock_abi() -> int:
    return child.landlock_abi()


_has_landlock = cache(child.landlock_abi)


@cache
def confines_foreign_code() -> bool:
    """Whether this machine can confine code that somebody else wrote."""
    return child.landlock_abi() >= MIN_FOREIGN_CODE_ABI and child.has_seccomp()


def command(worker: Worker, grant: Grant, program: Sequence[str] = ()) -> list[str]:
    """Return the command of a confined child."""
    seconds = int(grant.cpu_seconds or grant.seconds) + 1
    policy: dict[str, Any] = {
        "is_worker": not program,
        "has_network": worker.has_network,
        # Each limit, and up to where the child may raise it.
        "limits": {
            "AS": [worker.memory_bytes, max(worker.memory_bytes, worker.max_memory_bytes)],
            "CPU": [seconds, max(seconds, int(grant.max_cpu_seconds))],
            "FSIZE": [worker.file_bytes, worker.file_bytes],
            "NOFILE": [worker.open_files, worker.open_files],
            "CORE": [0, 0],
        },
        "nice": worker.nice,
        "modules": {module.__name__: module.__file__ for module in worker.modules},
    }
    if _has_landlock():
        own = program[0] if program else worker.program
        code_paths = LIBRARY_PATHS if worker.runs_foreign_code else CODE_PATHS
        policy["read"] = [
            *_code_paths(code_paths, own, *worker.readable),
            *_both_names(grant.readable),
        ]
        policy["write"] = [*DEVICES, *_both_names(grant.writable)]
    if worker.runs_foreign_code:
        if not confines_foreign_code():
            raise RuntimeError(worker.name)
        policy["refused_calls"] = [asdict(rule) for rule in system_calls.refused_calls()]
    if worker.has_silent_sockets and child.has_seccomp():
        policy["has_network"] = True  # what of it is refused are single calls
        policy["refused_calls"] = [asdict(rule) for rule in system_calls.silent_sockets()]
    options = ["-I"] if worker.needs_packages and not program else ["-I", "-S"]
    start = [sys.executable, *options, child.__file__, json.dumps(policy)]
    return [*start, *(program or [worker.program])]


def confined_argv(
    argv: Sequence[str],
    *,
    readable: Sequence[str] | None = None,
    writable: Sequence[str] = (),
    uid: int = 0,
) -> list[str]:
    """Return the argv of a program that stays, confined to these paths or as another user.

    Its limits are those of its supervisor, and it has the network.
    """
    policy: dict[str, Any] = {"uid": uid}
    if readable is not None:
        policy |= {"read": [*readable], "write": [*writable]}
    return [sys.executable, "-I", "-S", child.__file__, json.dumps(policy), *argv]


def environment(worker: Worker, grant: Grant) -> dict[str, str]:
    """Return all variables that a child gets: none of the server's own."""
    return {**BASE_ENVIRONMENT, **worker.environment, **grant.environment}


def hide(paths: Iterable[str]) -> None:
    """Let no child read these paths, unless a request grants something in them."""
    _hidden.update(paths)
    _code_paths.cache_clear()


def exclude_hidden(path: Path, hidden: Iterable[str]) -> Iterator[Path]:
    """Yield the path, or the parts of it that contain nothing hidden."""
    real = Path(os.path.realpath(path))
    hidden_paths = [Path(os.path.realpath(hidden_path)) for hidden_path in hidden]
    if any(real.is_relative_to(hidden_path) for hidden_path in hidden_paths):
        return
    if not any(hidden_path.is_relative_to(real) for hidden_path in hidden_paths):
        yield path
        return
    try:
        entries = sorted(path.iterdir())
    except OSError:
        return
    for entry in entries:
        yield from exclude_hidden(entry, hidden)


@cache
def _code_paths(code_paths: Sequence[str], *own: str) -> tuple[str, ...]:
    visible = (path for code in code_paths for path in exclude_hidden(Path(code), _hidden))
    return _both_names((*map(str, visible), *own))


def _both_names(paths: Iterable[str]) -> tuple[str, ...]:
    """Return each path as it is named and as it is after following links."""
    # What is called /proc/self is another folder in each process: here, it is the server's.
    names = (
        name
        for path in paths
        for name in (path, path if path.startswith("/proc/self") else os.path.realpath(path))
    )
    return tuple(dict.fromkeys(names))
