"""The real product as processes in its own folder, which can be killed and restarted."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.processes import (
    ROOT,
    TIMEOUT_SECONDS,
    clean_environment,
    free_port,
    wait_for_page,
)

ENDS_WITHIN = 40
PASSWORD = "a long walk on the beach"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """How the product runs: its environment, and workers."""

    name: str = "embedded"
    environment: Mapping[str, str] = field(default_factory=dict)
    workers: int = 0


EMBEDDED = Mode()


class Product:
    def __init__(
        self, folder: Path, model_url: str, mode: Mode = EMBEDDED, **more: str
    ) -> None:
        self.folder = folder
        self.mode = mode
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.effects_file = folder / "effects"
        self.log = folder / "output.log"
        self.environment = {
            **clean_environment(),
            "PORT": str(self.port),
            "ASHIATO_DATA": str(folder / "data"),
            "ASHIATO_ADMIN_PASSWORD": PASSWORD,
            "ASHIATO_MODEL": "openai/scripted",
            "ASHIATO_MODEL_URL": model_url,
            "ASHIATO_MODEL_KEY": "none",
            "ASHIATO_MODEL_DISCOVERY": "false",
            "ASHIATO_TOOLS": "tests.faults.tools",
            "FAULTS_EFFECTS": str(self.effects_file),
            **mode.environment,
            **more,
        }
        self.processes: list[subprocess.Popen] = []
        self._reader: subprocess.Popen | None = None

    @property
    def web(self) -> subprocess.Popen:
        return self.processes[0]

    @property
    def database(self) -> Path:
        return self.folder / "data" / "ashiato.sqlite3"

    @property
    def output(self) -> str:
        return self.log.read_text()

    @property
    def effects(self) -> list[str]:
        return self.effects_file.read_text().splitlines() if self.effects_file.exists() else []

    def start(self, fault: str = "", files: int = 0, patience: float = TIMEOUT_SECONDS) -> None:
        """Start and wait until it serves. A fault is set in the web process or the workers."""
        armed = {"ASHIATO_FAULTS": "1", "ASHIATO_FAULT": fault} if fault else {}
        limits = (lambda: _limit(files)) if files else None
        self.processes = [self._begun("serve", armed, limits)]
        wait_for_page(f"{self.url}/login/", self.web, self.log, patience)
        self.processes += [self._begun("worker", armed) for _ in range(self.mode.workers)]

    def replace(self, number: int) -> None:
        """Kill one of the processes, and start another in its place."""
        self.processes[number].kill()
        self.processes[number].wait()
        self.processes[number] = self._begun("worker", {})

    def kill(self) -> None:
        """Kill it at once, without a shutdown."""
        for process in self.processes:
            process.kill()
            process.wait()

    def stop(self) -> float:
        """Stop it like a deploy; return how long it took."""
        began = time.monotonic()
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        try:
            for process in self.processes:
                process.wait(ENDS_WITHIN)
        finally:
            self.kill()
        return time.monotonic() - began

    def died(self, seconds: float) -> bool:
        """Whether the web process ends by itself within this time."""
        try:
            self.web.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def run(self, *arguments: str, **more: str) -> str:
        """Run a command in the same environment; return its output."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=self.environment | more,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"{arguments}: {done.stderr[-2000:]}")
        return done.stdout

    def set_up(self, people: int, chats: int, notes: Path | str = "") -> list[dict]:
        made = self.run("-m", "tests.faults.setup_data", str(people), str(chats), str(notes))
        return json.loads(made)

    def dump(self, chats: Sequence[int] = ()) -> dict:
        """Return everything saved of these chats, or of all."""
        if self._reader is None:
            self._reader = subprocess.Popen(
                [sys.executable, "-m", "tests.faults.dump"],
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        self._reader.stdin.write(json.dumps(list(chats)).encode() + b"\n")
        self._reader.stdin.flush()
        return json.loads(self._reader.stdout.readline())

    def end(self) -> None:
        """Terminate everything that was started."""
        self.kill()
        if self._reader is not None:
            self._reader.kill()
            self._reader.communicate()

    def settled(self, seconds: float) -> dict:
        """Return the saved rows once no run is active."""
        end = time.monotonic() + seconds
        while True:
            kept = self.dump()
            running = [run for run in kept["runs"] if run["status"] == "running"]
            if not running or time.monotonic() > end:
                return kept

    def _begun(
        self, name: str, more: Mapping[str, str], limits: Callable[[], None] | None = None
    ) -> subprocess.Popen:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "manage.py", name],
                cwd=ROOT,
                env=self.environment | more,
                stdout=log,
                stderr=log,
                preexec_fn=limits,
            )


def children(process: subprocess.Popen) -> list[int]:
    """Return child processes that weren't reaped."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = Path(f"/proc/{entry}/stat").read_text()
        except OSError:
            continue
        if int(stat.rpartition(")")[2].split()[1]) == process.pid:
            found.append(int(entry))
    return found


def _limit(files: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
