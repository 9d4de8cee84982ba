"""A new installation that answers by itself, with the key of a program."""

import asyncio
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.processes import child, clean_environment, free_port, wait_for_page
from tests.compat.packages import HOME, ROOT

PASSWORD = "a long walk on the beach"
START_SECONDS = 240.0
MAKE_KEY = """
import django
django.setup()
from django.contrib.auth import get_user_model
from agents.access import api_keys
user = get_user_model().objects.get(username="demo")
print(api_keys.create(user, "compat", {scopes!r})[1])
"""
SCOPES = ("ask", "read", "approve")
SERVE = ("manage.py", "serve")


@dataclass(frozen=True, slots=True)
class Served:
    url: str
    key: str

    def fill(self, text: str) -> str:
        """Return an example of the docs for this installation."""
        return text.replace("https://ashiato.example.com", self.url).replace("ash_…", self.key)


@asynccontextmanager
async def serve(
    *,
    server: Sequence[str] = SERVE,
    script: str = "",
    model_url: str = "",
    tools: str = "",
    allowed: str = "",
    scopes: Sequence[str] = SCOPES,
) -> AsyncIterator[Served]:
    """Serve a new installation, after this script of its own.

    Its model is the demo model, or the one at `model_url`. It has the tools of the modules in
    `tools`. The key has these `scopes`. Requests may go to the private address `allowed`.
    """
    HOME.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=HOME, prefix="served-") as folder:
        port = free_port()
        env = {
            "DJANGO_SETTINGS_MODULE": "project.settings",
            "PORT": str(port),
            "ASHIATO_DATA": str(Path(folder, "data")),
            "ASHIATO_ADMIN_PASSWORD": PASSWORD,
            "ASHIATO_MODEL": "demo",
            "ASHIATO_DEMO_DELAY": "0",
            "ASHIATO_EGRESS_ALLOW": allowed,
            "ASHIATO_TOOLS": tools,
        }
        if model_url:
            env |= {"ASHIATO_MODEL": "openai/scripted", "ASHIATO_MODEL_URL": model_url}
            env |= {"ASHIATO_MODEL_KEY": "none", "ASHIATO_MODEL_DISCOVERY": "false"}
        await _run("manage.py", "setup", env=env)
        key = await _run("-c", MAKE_KEY.format(scopes=scopes), env=env)
        if script:
            await _run("-c", script, env=env)
        log = Path(folder, "serve.log")
        with child(*server, env={**env, "COMPAT_KEY": key}, log=log) as process:
            page = f"http://127.0.0.1:{port}/login/"
            await asyncio.to_thread(wait_for_page, page, process, log, START_SECONDS)
            yield Served(f"http://127.0.0.1:{port}", key)


async def _run(*arguments: str, env: dict[str, str]) -> str:
    return await run(sys.executable, *arguments, env=env)


async def run(*command: str, env: dict[str, str] | None = None, status: int | None = 0) -> str:
    """Return what a program prints, if it ends with this status; with None, also its errors."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=ROOT,
        env=clean_environment() | (env or {}),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT if status is None else asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    last = ((errors or b"").strip() or output.strip())[-600:].decode(errors="replace")
    problem = last or f"ended with {process.returncode}"
    assert status in (None, process.returncode), f"{Path(command[0]).name}: {problem}"
    return output.decode().strip()


def example(page: str, language: str, number: int = 0) -> str:
    """Return a code block of a page in docs/, so that a row runs what the page says."""
    text = (ROOT / "docs" / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[number]
