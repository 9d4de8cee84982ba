"""Other chat products, each in its own environment, with the same load as ours.

`python -m tests.bench.peers` installs them under var/peers.
"""

import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import orjson

from tests.bench import chat
from tests.bench.chat import PLAN, PRODUCT, RELAY, WARM_UP, Server
from tests.bench.engine import fake_llm
from tests.bench.processes import ROOT, child, free_port, wait_for_page
from tests.bench.rounds import Reading, Size, rows

HOME = ROOT / "var" / "peers"
PACKAGES = {
    "chainlit": ["chainlit==2.12.0", "openai==3.49.0"],
    "open-webui": ["open-webui==0.12.4", "torch==2.13.0"],
}
SOCKET = "/ws/socket.io/?EIO=4&transport=websocket"
STARTS_WITHIN = 300
MAX_CHATS = 100
ABOUT = f"""\
Peers: the chats of others beside ours, as in the table of the chat, with answers of
{PLAN.tokens} tokens, {PLAN.rate} a second. Chainlit keeps nothing and knows no people; Open
WebUI keeps the chats of people in SQLite, as ours does. Neither keeps steps."""
# Defaults, without features that call the model in the background.
QUIET = {
    "ENABLE_OLLAMA_API": "False",
    "OFFLINE_MODE": "True",
    "HF_HUB_OFFLINE": "1",
    "RAG_EMBEDDING_ENGINE": "openai",
    "ENABLE_TITLE_GENERATION": "False",
    "ENABLE_TAGS_GENERATION": "False",
    "ENABLE_FOLLOW_UP_GENERATION": "False",
    "ENABLE_AUTOCOMPLETE_GENERATION": "False",
    "BYPASS_MODEL_ACCESS_CONTROL": "True",
    "ENABLE_VERSION_UPDATE_CHECK": "False",
    "ENABLE_PERSISTENT_CONFIG": "False",
    "GLOBAL_LOG_LEVEL": "WARNING",
    "ANONYMIZED_TELEMETRY": "False",
    "DO_NOT_TRACK": "true",
    "SCARF_NO_ANALYTICS": "true",
    "WEBUI_SECRET_KEY": "bench",
    "OPENAI_API_KEY": "none",
}


def measure(size: Size) -> list[dict]:
    """Measure one round: the slow ones are too slow for the variance to matter."""
    size = replace(size, rounds=1, chats=tuple(n for n in size.chats if n <= MAX_CHATS))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ashiato-bench-")))
        llm = stack.enter_context(fake_llm(PLAN.model))
        servers = {
            RELAY: stack.enter_context(chat.relay_server(llm)),
            PRODUCT: stack.enter_context(chat.product_server(llm, folder, size)),
        }
        for name, start in STARTS.items():
            if is_installed(name):
                servers[name] = stack.enter_context(start(llm, folder, max(size.chats)))
        for server in servers.values():
            chat.measure_load(server, WARM_UP, llm)
        readings = [
            Reading(number, name, level, chat.measure_load(server, level, llm))
            for number in range(size.rounds)
            for level in size.chats
            for name, server in servers.items()
        ]
    return rows(readings, RELAY, ["cpu ms / 1000"])


def version(name: str) -> str:
    return PACKAGES[name][0].partition("==")[2]


def is_installed(name: str) -> bool:
    return (HOME / name / "installed").exists()


@dataclass
class Peer(Server):
    """A peer's server; its users have tokens, or none."""

    kind: str = ""
    tokens: list[str] = field(default_factory=list)

    def _page(self, number: int) -> dict:
        where = f"127.0.0.1:{self.port}"
        page = {"kind": self.kind, "model": PLAN.model, "cookie": ""}
        token = self.tokens[number] if self.tokens else ""
        return {
            **page,
            "url": f"ws://{where}{SOCKET}",
            "origin": f"http://{where}",
            "token": token,
        }


@contextmanager
def chainlit(llm: int, folder: Path, people: int) -> Iterator[Server]:
    port, log = free_port(), folder / "chainlit.log"
    home, program = _home(folder, "chainlit"), HOME / "chainlit" / "bin" / "chainlit"
    app = ROOT / "tests" / "bench" / "chainlit_app.py"
    env = {"RELAY_MODEL": PLAN.model, "RELAY_URL": f"http://127.0.0.1:{llm}/v1"}
    arguments = ("run", app, "--headless", "--port", port)
    with child(*arguments, program=program, env=env, cwd=home, log=log) as process:
        wait_for_page(f"http://127.0.0.1:{port}/", process, log, STARTS_WITHIN)
        yield Peer(process, port, "", kind="chainlit")


@contextmanager
def open_webui(llm: int, folder: Path, people: int) -> Iterator[Server]:
    port, log = free_port(), folder / "open-webui.log"
    home, program = _home(folder, "open-webui"), HOME / "open-webui" / "bin" / "open-webui"
    model = f"http://127.0.0.1:{llm}/v1"
    env = QUIET | {"DATA_DIR": str(home), "OPENAI_API_BASE_URL": model}
    env |= {"RAG_OPENAI_API_BASE_URL": model, "RAG_OPENAI_API_KEY": "none"}
    arguments = ("serve", "--host", "127.0.0.1", "--port", port)
    with child(*arguments, program=program, env=env, cwd=home, log=log) as process:
        wait_for_page(f"http://127.0.0.1:{port}/health", process, log, STARTS_WITHIN)
        yield Peer(process, port, "", kind="open-webui", tokens=_accounts(port, people))


STARTS: dict[str, Callable[[int, Path, int], AbstractContextManager[Server]]] = {
    "chainlit": chainlit,
    "open-webui": open_webui,
}


def _home(folder: Path, name: str) -> Path:
    home = folder / name
    home.mkdir()
    return home


def _accounts(port: int, people: int) -> list[str]:
    """Create accounts; the first one to sign up is the administrator, who adds the others."""
    url = f"http://127.0.0.1:{port}/api/v1/auths"
    root = _post_json(f"{url}/signup", _person(0))
    return [
        _post_json(f"{url}/add", _person(number) | {"role": "user"}, root)
        for number in range(1, max(people, WARM_UP) + 1)
    ]


def _person(number: int) -> dict[str, str]:
    email = f"person-{number}@example.com"
    return {"name": f"person-{number}", "email": email, "password": "bench-Passw0rd!"}


def _post_json(url: str, body: dict, token: str = "") -> str:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    request = urllib.request.Request(url, orjson.dumps(body), headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        return orjson.loads(response.read())["token"]


def install(*names: str) -> None:
    """Install the peers; those that can't be installed are reported and skipped."""
    for name in names or PACKAGES:
        if is_installed(name):
            continue
        print(f"Installing {name}…", flush=True)
        try:
            _install(HOME / name, PACKAGES[name])
        except subprocess.CalledProcessError as error:
            print(f"{name} cannot be installed here and is left out: {error}", flush=True)


def _install(home: Path, packages: list[str]) -> None:
    uv, python = Path(sys.executable).with_name("uv"), home / "bin" / "python"
    subprocess.run(
        [uv, "venv", "--quiet", "--clear", "--python", sys.executable, home], check=True
    )
    command = [uv, "pip", "install", "--quiet", "--python", python, *packages]
    subprocess.run(command, check=True)
    (home / "installed").touch()


if __name__ == "__main__":
    install()
