"""The npm package `oidc-provider` with its default settings, as a process."""

import fcntl
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from tests.browser.server import PROJECT, free_port

HERE = Path(__file__).parent / "oidc_provider"
INSTALLS_WITHIN, STARTS_WITHIN = 120, 30
CLIENT, SECRET = "ashiato", "a secret between the two of them"


@dataclass
class IdentityProvider:
    """A provider for one client; it signs in anybody with any password."""

    server_url: str
    port: int = field(default_factory=free_port)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """The product's settings for this provider."""
        return {
            "ASHIATO_OIDC_ISSUER": self.url,
            "ASHIATO_OIDC_CLIENT_ID": CLIENT,
            "ASHIATO_OIDC_CLIENT_SECRET": SECRET,
            "ASHIATO_OIDC_NAME": "Acme",
            "ASHIATO_OIDC_GROUPS_CLAIM": "groups",
        }

    @contextmanager
    def running(self) -> Iterator[None]:
        command = [
            "node",
            "provider.js",
            json.dumps({"port": self.port, "client": self._client}),
        ]
        process = subprocess.Popen(
            command,
            cwd=installed(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            self._wait(process)
            yield
        finally:
            process.terminate()
            process.wait(10)

    @property
    def _client(self) -> dict:
        return {
            "client_id": CLIENT,
            "client_secret": SECRET,
            "redirect_uris": [f"{self.server_url}/login/oidc/back/"],
            "post_logout_redirect_uris": [f"{self.server_url}/login/oidc/signed-out/"],
        }

    def _wait(self, process: subprocess.Popen) -> None:
        deadline = time.monotonic() + STARTS_WITHIN
        while time.monotonic() < deadline and process.poll() is None:
            try:
                urlopen(f"{self.url}/.well-known/openid-configuration", timeout=5).close()
                return
            except (URLError, ConnectionError, TimeoutError):
                time.sleep(0.05)
        raise RuntimeError(f"oidc-provider didn't start (exit code {process.poll()}).")


def installed() -> Path:
    """Return the folder with the provider, installed once for each version of its lock file."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("Node.js and npm aren't installed (Debian: apt-get install nodejs npm).")
    mark = sha256(b"".join(path.read_bytes() for path in sorted(HERE.iterdir()))).hexdigest()
    folder = PROJECT / "var" / "npm" / f"oidc-provider-{mark[:12]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "installed").exists():
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(HERE, folder)
            options = ["--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
            subprocess.run(
                [npm, "ci", *options], cwd=folder, check=True, timeout=INSTALLS_WITHIN
            )
            (folder / "installed").touch()
    return folder
