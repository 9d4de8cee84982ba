"""Bubblewrap: namespaces in which a program sees nothing but what is mounted for it."""

import shutil
import subprocess
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

PROBE_TIMEOUT_SECONDS = 10.0
NAMESPACE_ARGS = (
    *("--unshare-all", "--share-net", "--die-with-parent", "--cap-drop", "ALL"),
    *("--proc", "/proc", "--dev", "/dev"),
)
READ = "--ro-bind-try"
WRITE = "--bind-try"


@cache
def works(system_paths: Sequence[str]) -> bool:
    """Whether it is installed and allowed to create namespaces; tried with these paths."""
    program = shutil.which("bwrap")
    probe = shutil.which("true")
    if not program or not probe:
        return False
    binds = [arg for path in system_paths for arg in (READ, path, path)]
    try:
        tried = subprocess.run(
            [program, *NAMESPACE_ARGS, *binds, "--", probe],
            env={},  # a probe needs no keys
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return tried.returncode == 0


def argv(
    command: Sequence[str],
    *,
    readable: Iterable[str],
    writable: Iterable[str],
    temporary_folder: str,
    cwd: str,
) -> list[str]:
    """Return the argv of a command that can only use these paths, and the network."""
    arguments = [shutil.which("bwrap") or "bwrap", *NAMESPACE_ARGS]
    arguments += ["--bind", temporary_folder, "/tmp"]
    mounts = [(Path(path), READ) for path in readable]
    mounts += [(Path(path), WRITE) for path in writable]
    binds: dict[Path, str] = {}
    # Nested paths are mounted after their parents, or not at all if that would grant nothing
    # more: a link there leads to what is mounted under its own name.
    for path, option in sorted(mounts, key=lambda mount: len(mount[0].parts)):
        parent_option = next((binds[parent] for parent in path.parents if parent in binds), "")
        if parent_option not in (option, WRITE):
            binds[path] = option
            arguments += [option, str(path), str(path)]
    return [*arguments, "--chdir", cwd, "--", *command]
