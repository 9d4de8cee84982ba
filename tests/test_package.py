"""The wheel and the source package: what is in them, and that they work by themselves.

These tests install packages, so they need a package index.
"""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import acp
import pytest

from tests.wire import call, say, serve_in_thread

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parent.parent
UV = Path(sys.executable).with_name("uv")  # of the virtual environment
PYTHON_EXAMPLE = re.compile(r"```python\n(.*?)```", re.S)
RESOURCES = "project/resources"
STARTS_WITHIN = 300  # a busy machine is slow; a server that dies is noticed at once
STYLESHEET = re.compile(r'<link rel="stylesheet" href="([^"]+)"')

MAKE_KEY = """
from django.contrib.auth.models import User
from agents.access import api_keys
from agents.models import ApiKey
print(api_keys.create(User.objects.get(), "CI", ApiKey.Scope.values)[1])
"""


def run(*command: object, **options: object) -> subprocess.CompletedProcess[str]:
    ended = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=900, **options
    )
    assert ended.returncode == 0, f"{command}:\n{ended.stdout}\n{ended.stderr}"
    return ended


def environment(home: Path, **values: str) -> dict[str, str]:
    """Return an environment without anything of ours."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ASHIATO_", "PYTHON", "VIRTUAL_ENV", "XDG_", "SSL_CERT_FILE"))
    }
    return kept | {"HOME": str(home), "ASHIATO_MODEL": "demo"} | values


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with both packages; the wheel is built from the source package."""
    folder = tmp_path_factory.mktemp("dist")
    run(UV, "build", "-q", "--out-dir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    [path] = built.glob("*.whl")
    return path


def install(folder: Path, requirement: str) -> Path:
    """Install into a new environment, with the locked versions; return its programs' folder."""
    run(UV, "venv", "-q", "--python", sys.executable, folder)
    python = folder / "bin" / "python"
    lock = ROOT / "requirements.lock"
    run(UV, "pip", "install", "-q", "--python", python, "-c", lock, requirement)
    return folder / "bin"


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def files_of(*folders: str) -> set[str]:
    return {
        path.relative_to(ROOT).as_posix()
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


def test_a_wheel_has_all_files_of_the_product_and_no_others(wheel: Path) -> None:
    names = set(contents(wheel))

    assert files_of("agents", "chat", "project") <= names
    resources = files_of("templates", "static", "locale", "docs/handbook")
    assert {f"{RESOURCES}/{name}" for name in resources} <= names
    assert f"{RESOURCES}/locale/ja/LC_MESSAGES/django.mo" in names
    assert {"agents/py.typed", "chat/py.typed", "project/py.typed"} <= names
    assert not [name for name in names if re.search(r"(^|/)(tests|var|__pycache__)/", name)]
    licenses = {name.partition("/licenses/")[2] for name in names if "/licenses/" in name}
    vendored = {str(path.relative_to(ROOT)) for path in ROOT.glob("static/vendor/*/LICENSE")}
    assert licenses == {"LICENSE"} | vendored


def test_a_wheel_from_the_source_package_is_the_one_from_the_checkout(
    built: Path, wheel: Path, tmp_path: Path
) -> None:
    run(UV, "build", "-q", "--wheel", "--out-dir", tmp_path, ROOT)
    [direct] = tmp_path.glob("*.whl")
    [source] = built.glob("*.tar.gz")

    assert contents(direct) == contents(wheel)
    with tarfile.open(source) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    assert not [name for name in names if name.startswith(("tests/", "var/", ".venv/"))]


def test_the_engine_runs_its_example_without_django(wheel: Path, tmp_path: Path) -> None:
    programs = install(tmp_path / "venv", str(wheel))
    [example] = PYTHON_EXAMPLE.findall((ROOT / "docs" / "command-line.md").read_text())
    script = [call(("weather", '{"city": "Kyoto"}')), say("It is sunny in Kyoto.")]

    with serve_in_thread(script) as server:
        values = {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": server.url}
        world = environment(tmp_path, **values)
        ended = run(programs / "python", "-c", example, env=world, cwd=tmp_path)
    assert ended.stdout.splitlines()[-1] == "It is sunny in Kyoto."

    missing = "import importlib.util as util; print(util.find_spec('django'))"
    assert run(programs / "python", "-c", missing, cwd=tmp_path).stdout == "None\n"
    served = subprocess.run(
        [programs / "ashiato", "serve"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
    )
    assert served.returncode == 2
    assert "pip install 'ashiato[web]'" in served.stderr
    assert "exit codes" in run(programs / "ashiato", "--help").stdout


def test_the_example_of_the_readme_runs_with_litellm(wheel: Path, tmp_path: Path) -> None:
    programs = install(tmp_path / "venv", f"ashiato[litellm] @ {wheel.as_uri()}")
    [example] = PYTHON_EXAMPLE.findall((ROOT / "README.md").read_text())
    script = [call(("weather", '{"city": "Kyoto"}')), say("It is sunny in Kyoto.")]

    with serve_in_thread(script) as server:
        values = {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": server.url}
        world = environment(tmp_path, **values)
        ended = run(programs / "python", "-c", example, env=world, cwd=tmp_path)
    assert ended.stdout.splitlines()[-1].count("It is sunny in Kyoto.") == 1


@pytest.fixture(scope="module")
def product(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("product")
    return install(folder / "venv", f"ashiato[web] @ {wheel.as_uri()}")


@pytest.fixture
def served(product: Path, tmp_path: Path) -> Iterator[str]:
    """Serve the product from the wheel; yield its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [product / "ashiato", "serve", "--port", str(port)],
            env=environment(tmp_path),
            cwd=tmp_path,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline = time.monotonic() + STARTS_WITHIN
        while not is_ready(url):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        yield url
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


def is_ready(url: str) -> bool:
    try:
        with urlopen(f"{url}/readyz", timeout=5) as response:
            return response.status == 200
    except (URLError, OSError):
        return False


def test_the_product_runs_from_the_wheel(served: str, product: Path, tmp_path: Path) -> None:
    page = fetch(f"{served}/login/")
    [stylesheet] = STYLESHEET.findall(page)
    japanese = fetch(f"{served}/login/", "ja")

    assert "--" in fetch(f"{served}{stylesheet.replace('&amp;', '&')}")  # custom properties
    assert 'lang="ja"' in japanese
    assert "ユーザー名" in japanese
    assert (tmp_path / ".local/share/ashiato/secret_key").exists()
    world = environment(tmp_path)
    asked = run(product / "ashiato", "ask", "2+2", env=world, cwd=tmp_path)
    assert "4" in asked.stdout

    key = run(product / "ashiato", "shell", "-v0", "-c", MAKE_KEY, env=world).stdout.strip()
    run(product / "ashiato", "login", served, "--key", key, env=world)
    asked = run(product / "ashiato", "ask", "6 * 7", env=world)
    assert "42" in asked.stdout
    [number] = re.findall(r"run (\d+)", asked.stderr)
    drawn = run(product / "ashiato", "trace", number, env=world).stdout
    assert drawn.startswith(f"Run {number} · helper · completed")
    assert asyncio.run(ask_as_editor(product, world)) == "end_turn"


async def ask_as_editor(product: Path, world: dict[str, str]) -> str:
    """Ask a question through `ashiato acp --local`; return why the turn ended."""

    class Editor(acp.Client):
        async def session_update(self, *_values: object, **_options: object) -> None:
            pass

    command = str(product / "ashiato")
    async with acp.spawn_agent_process(Editor(), command, "acp", "--local", env=world) as (
        connection,
        _process,
    ):
        await connection.initialize(protocol_version=acp.PROTOCOL_VERSION)
        session = await connection.new_session(cwd="/", mcp_servers=[])
        prompt = [acp.text_block("6 * 7")]
        response = await connection.prompt(session_id=session.session_id, prompt=prompt)
    return response.stop_reason


def fetch(url: str, language: str = "en") -> str:
    with urlopen(Request(url, headers={"Accept-Language": language}), timeout=30) as response:
        return response.read().decode()
