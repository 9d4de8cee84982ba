"""What the web process has in memory after its first page and its first answer."""

import json
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import httpx2
import pytest
from websockets.sync.client import connect

from tests.bench.processes import ROOT, child, free_port, wait_for_page

PASSWORD = "a long walk on the beach"
# A server that writes its modules to the file that it is told.
SERVE = """
import os, sys, threading
from pathlib import Path

def list_modules():
    file = Path(input())
    file.with_suffix(".part").write_text("\\n".join(sys.modules))
    file.with_suffix(".part").rename(file)

threading.Thread(target=list_modules, daemon=True).start()
os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"
from project.commands import execute
execute(["manage.py", "serve"])
"""
LOAD = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"
import django
django.setup()
import agents.web.asgi.server, project.asgi, project.urls
print(*sys.modules, sep="\\n")
"""
# And what needs each of them: nothing does before a user asks for it.
HEAVY_PACKAGES = {
    "onnxruntime": "the local embedding model, in a child process",
    "onnxruntime_extensions": "the local embedding model, in a child process",
    "sentencepiece": "the local embedding model, in a child process",
    "numpy": "comparing vectors: a search, memories, or a choice among many tools",
    "litellm": "models of providers that don't speak OpenAI's format",
    "fastmcp": "MCP servers",
    "mcp": "MCP servers, and programs that use ours",
    "starlette": "programs that use our MCP server",
    "sqlglot": "queries of databases",
    "PIL": "images, in a child process",
    "cv2": "images with text, in a child process",
    "pi_heif": "images, in a child process",
    "rapidocr": "images with text, in a child process",
    "docx": "documents, in a child process",
    "lxml": "documents, in a child process",
    "openpyxl": "documents, in a child process",
    "pptx": "documents, in a child process",
    "pypdfium2": "documents, in a child process",
    "ctranslate2": "recordings, in a child process",
    "faster_whisper": "recordings, in a child process",
    "boto3": "files in S3",
    "botocore": "files in S3",
}


@pytest.fixture
def served_modules(tmp_path):
    """The names of the modules after the first answer and the first indexed passages."""
    port = free_port()
    env = {
        "PORT": str(port),
        "ASHIATO_DATA": str(tmp_path / "data"),
        "ASHIATO_ADMIN_PASSWORD": PASSWORD,
        "ASHIATO_MODEL": "demo",
        "ASHIATO_DEMO_DELAY": "0",
    }
    log = tmp_path / "serve.log"
    with child("-c", SERVE, env=env, log=log, stdin=subprocess.PIPE) as server:
        wait_for_page(f"http://127.0.0.1:{port}/login/", server, log)
        assert "42" in ask(port, "What is 6 * 7?")
        with closing(sqlite3.connect(tmp_path / "data" / "ashiato.sqlite3")) as database:
            # The handbook's first passages have their vectors.
            wait_until(lambda: database.execute("SELECT id FROM agents_chunkvector").fetchone())
        names = tmp_path / "modules"
        with server.stdin as orders:
            orders.write(f"{names}\n".encode())
        wait_until(names.exists)
    return names.read_text().split()


def ask(port, question):
    """Sign in, open the first page, ask, and return the answer."""
    origin = f"http://127.0.0.1:{port}"
    with httpx2.Client(base_url=origin, timeout=60, follow_redirects=True) as client:
        client.headers["X-CSRFToken"] = client.get("/login/").cookies["csrftoken"]
        client.post("/login/", data={"username": "demo", "password": PASSWORD})
        assert client.get("/").status_code == 200
        client.headers["X-CSRFToken"] = client.cookies["csrftoken"]
        page = client.post("/chat/", data={"text": question})
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        socket = f"ws://127.0.0.1:{port}/ws{page.url.path}"
        with connect(socket, origin=origin, additional_headers={"Cookie": cookie}) as tab:
            assert tab.recv(timeout=30)
            events = client.get("/api/runs/1/events/").text
    data = [line.removeprefix("data: ") for line in events.splitlines() if "data: " in line]
    return json.loads(data[-1])["data"]["answer"]


def wait_until(happened):
    end = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.1)


def heavy_packages(modules):
    packages = {name.partition(".")[0] for name in modules}
    return {name: reason for name, reason in HEAVY_PACKAGES.items() if name in packages}


def test_loading_the_product_imports_no_heavy_package(tmp_path):
    listed = subprocess.run(
        [sys.executable, "-c", LOAD],
        cwd=ROOT,
        env={"ASHIATO_DATA": str(tmp_path), "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert heavy_packages(listed.stdout.split()) == {}


@pytest.mark.thorough
def test_the_first_answer_imports_no_heavy_package(served_modules):
    assert "chat.live.consumers" in served_modules
    assert heavy_packages(served_modules) == {}
