"""The real server on its own port and folder, and the browser."""

import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

PROJECT = Path(__file__).resolve().parents[2]
NAME, PASSWORD = "demo", "a long walk on the beach"
STARTS_WITHIN = 60
ENDS_WITHIN = 120
# Each window would otherwise start with two more pages, for suggestions no one sees. The last
# of several such lists counts, so Playwright's own values are repeated.
LEFT_OUT = [
    *("WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "AimEnabled", "LensOverlay", "MediaRouter"),
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades"),
    *("PaintHolding", "ThirdPartyStoragePartitioning", "OptimizationHints"),
    "SpareRendererForSitePerProcess",
]
QUIET = [
    *("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
    f"--disable-features={','.join(LEFT_OUT)}",
    # A microphone that beeps, and a user who allows it.
    *("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"),
]


class Server:
    """`manage.py serve`, which can be killed and restarted in place."""

    def __init__(self, folder: Path, delay: float) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = _environment() | {
            "PORT": str(self.port),
            "ASHIATO_DATA": str(folder / "data"),
            "ASHIATO_ADMIN_PASSWORD": PASSWORD,
            "ASHIATO_MODEL": "demo",
            "ASHIATO_DEMO_DELAY": str(delay),
            # The local one takes seconds to load; `tests/knowledge/test_retrieval.py` uses it.
            "ASHIATO_EMBEDDING_MODEL": "demo",
        }

    def start(self) -> None:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "serve"],
                cwd=PROJECT,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._wait()

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(15)
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill it at once, without a shutdown."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def forget_languages(self) -> None:
        """Forget the languages that earlier tests have chosen, so that the browser's counts."""
        with closing(sqlite3.connect(self.folder / "data" / "ashiato.sqlite3")) as database:
            database.execute("PRAGMA busy_timeout = 10000")
            database.execute("UPDATE people_profile SET language = ''")
            database.commit()

    def manage(self, *arguments: str) -> str:
        """Return a command's output."""
        command = [sys.executable, "manage.py", *arguments]
        place = {"cwd": PROJECT, "env": self.environment, "text": True}
        how = {"check": True, "capture_output": True, "timeout": ENDS_WITHIN}
        return subprocess.run(command, **place, **how).stdout

    @property
    def sample(self) -> Path:
        """The shop that the database tool reads."""
        return self.folder / "data" / "sample.sqlite3"

    @property
    def output(self) -> str:
        return self._log.read_text()

    @property
    def _log(self) -> Path:
        return self.folder / "output.log"

    def _wait(self) -> None:
        deadline = time.monotonic() + STARTS_WITHIN
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                urlopen(f"{self.url}/login/", timeout=5).close()
                return
            except (URLError, ConnectionError, TimeoutError):
                time.sleep(0.05)
        self.kill()
        raise RuntimeError(f"The server did not start:\n{self.output}")


def launch_options() -> dict:
    """Return Playwright's options to start this machine's browser."""
    # The first has no windows, and needs a quarter less for the same pages.
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        install = "apt-get install chromium-headless-shell"
        sys.exit(f"The browser tests need Chromium. On Debian: {install}")
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    return {"executable_path": path, "args": [*QUIET, *(["--no-sandbox"] if is_root else [])]}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _environment() -> dict[str, str]:
    """Return our environment, without a developer's own settings."""
    ours = {k: v for k, v in os.environ.items() if not k.startswith("ASHIATO_")}
    ours.pop("HOST", None)
    return ours
