"""Other products' chats, whose models are our agents."""

import asyncio
import json
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

from tests.bench import peers
from tests.bench.processes import child, free_port, wait_for_page
from tests.compat.browser import browser_page
from tests.compat.packages import HERE, node_packages, node_path, version
from tests.compat.rows import NotTried, row
from tests.compat.served import Served, example, run, serve

WAYS_IN = "Ways in"
PAGE = "openai.md"
DEMO = "the demo model"
OPEN_WEBUI = "open-webui"
LIBRECHAT = ("@librechat/agents", "librechat-data-provider")
START_SECONDS = 300
BACKGROUND_SECONDS = 5
# So that it works without the Internet, and leaves no other traces.
OFFLINE = (
    *("ENABLE_OLLAMA_API", "OFFLINE_MODE", "HF_HUB_OFFLINE", "ENABLE_VERSION_UPDATE_CHECK"),
    *("RAG_EMBEDDING_ENGINE", "ANONYMIZED_TELEMETRY", "DO_NOT_TRACK", "SCARF_NO_ANALYTICS"),
    "WEBUI_SECRET_KEY",
)
EMAIL = "demo@example.com"
PASSWORD = "a long walk on the beach"
QUESTION = "What is 6 * 7?"


@row(
    WAYS_IN,
    "Open WebUI",
    peers.version(OPEN_WEBUI),
    real="Open WebUI with the page's variables, a browser",
    played=DEMO,
)
async def check_open_webui() -> str:
    await asyncio.to_thread(peers.install, OPEN_WEBUI)
    if not peers.is_installed(OPEN_WEBUI):
        raise NotTried("Open WebUI can't be installed here.")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    async with serve() as ashiato:
        with tempfile.TemporaryDirectory() as folder:
            program = peers.HOME / OPEN_WEBUI / "bin" / OPEN_WEBUI
            command = ashiato.fill(example(PAGE, "sh", 1)).replace(
                "open-webui serve", f"exec {program} serve --host 127.0.0.1 --port {port}"
            )
            environment = {name: peers.QUIET[name] for name in OFFLINE} | {"DATA_DIR": folder}
            log = Path(folder, "log")
            options = {"program": "sh", "env": environment, "cwd": folder, "log": log}
            with child("-c", command, **options) as process:
                page = f"{url}/health"
                await asyncio.to_thread(wait_for_page, page, process, log, START_SECONDS)
                models = await _chat_in_open_webui(url)
                # A title, tags and follow-up questions would be runs, too.
                await asyncio.sleep(BACKGROUND_SECONDS)
        runs = _get(ashiato, "/api/v1/runs")["items"]
        agents = [model["id"] for model in _get(ashiato, "/v1/models")["data"]]
    assert set(agents) <= set(models), models
    assert [run["agent"] for run in runs] == ["helper"], runs
    return f"{len(agents)} agents as its models, one asked in a chat"


async def _chat_in_open_webui(url: str) -> list[str]:
    """Sign up, ask an agent, and return the models that it offers."""
    person = {"name": "demo", "email": EMAIL, "password": PASSWORD}
    async with browser_page() as page:
        await page.request.post(f"{url}/api/v1/auths/signup", data=person)
        await page.goto(f"{url}/auth", wait_until="commit")
        await page.get_by_label("Email").fill(EMAIL)
        await page.locator("input[type=password]").first.fill(PASSWORD)
        await page.keyboard.press("Enter")
        await page.wait_for_url(f"{url}/", wait_until="commit")
        await page.goto(f"{url}/?models=helper", wait_until="commit")
        question = page.locator("#chat-input")
        await question.wait_for()
        await page.keyboard.press("Escape")  # what is new in this version
        await question.click()
        await page.keyboard.type(QUESTION)
        await page.keyboard.press("Enter")
        await page.locator(".chat-assistant").get_by_text("42").wait_for()
        response = await page.request.get(f"{url}/api/models")
        return [model["id"] for model in (await response.json())["data"]]


@row(
    WAYS_IN,
    "LibreChat's packages",
    ", ".join(map(version, LIBRECHAT)),
    real="its agents, which ask the model, and its schema of librechat.yaml",
    played="LibreChat's server, which no registry has, and the demo model",
)
async def check_librechat() -> str:
    folder = await node_packages("librechat", *LIBRECHAT, builds=())
    script = folder / "ask.mjs"
    script.write_text((HERE / "librechat_request.mjs").read_text())
    async with serve() as ashiato:
        (folder / "librechat.yaml").write_text(ashiato.fill(example(PAGE, "yaml")))
        variables = {"PATH": node_path(), "ASHIATO_KEY": ashiato.key}
        seen = json.loads(await run("node", str(script), env=variables))
        agents = [model["id"] for model in _get(ashiato, "/v1/models")["data"]]
    assert seen["models"] == agents, seen
    assert "42" in seen["answer"], seen
    assert seen["pieces"], seen
    return f"its configuration is valid; {len(agents)} models, an answer streamed"


def _get(ashiato: Served, path: str) -> Any:
    headers = {"Authorization": f"Bearer {ashiato.key}"}
    request = urllib.request.Request(ashiato.url + path, headers=headers)
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)
