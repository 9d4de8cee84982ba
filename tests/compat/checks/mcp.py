"""Published MCP servers: imported in the console and used in a run, like a user does."""

import asyncio
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.bench.processes import child, free_port, wait_for_port
from tests.compat.installation import Installation
from tests.compat.packages import HOME, installed_version, python_programs, version
from tests.compat.rows import Check, NotTried, row

AREA = "MCP servers"
USER_WAY = "the server, its import in the console, an agent's run, an approval, the trace"
MODEL = "the model"


@asynccontextmanager
async def _home() -> AsyncIterator[str]:
    HOME.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=HOME, prefix="home-") as folder:
        yield folder


def _uvx(package: str, *args: str) -> dict[str, Any]:
    """Return a server's entry as its README has it, with the version pinned."""
    return {"command": "uvx", "args": [f"{package}=={version(package)}", *args]}


def _npx(package: str, *args: str) -> dict[str, Any]:
    if shutil.which("npx") is None:
        raise NotTried("npx isn't installed.")
    return {"command": "npx", "args": ["-y", f"{package}@{version(package)}", *args]}


def _user_row(name: str, package: str) -> Callable[[Check], Check]:
    return row(AREA, name, version(package), real=USER_WAY, played=MODEL)


@_user_row("time (uvx)", "mcp-server-time")
async def check_time() -> str:
    async with Installation(python_programs("uv")) as ashiato:
        await ashiato.import_server("time", _uvx("mcp-server-time"))
        trace = await ashiato.use(("time__get_current_time", {"timezone": "Asia/Tokyo"}))
    assert "+09:00" in trace.text, trace.text
    return "the time in Tokyo"


@_user_row("git (uvx)", "mcp-server-git")
async def check_git() -> str:
    async with _home() as repository, Installation(python_programs("uv")) as ashiato:
        _git(repository, "init", "--quiet")
        _write(repository, "readme.md", "Footprints")
        _git(repository, "add", "readme.md")
        _git(repository, "commit", "--quiet", "-m", "First step")
        entry = _uvx("mcp-server-git", "--repository", repository)
        await ashiato.import_server("git", entry, f"{repository}:rw")
        trace = await ashiato.use(("git__git_log", {"repo_path": repository}))
    assert "First step" in trace.text, trace.text
    return "the log of a repository in an allowed folder"


def _write(folder: str, name: str, text: str) -> None:
    Path(folder, name).write_text(text)


def _git(folder: str, *args: str) -> None:
    who = ("-c", "user.name=Aiko", "-c", "user.email=aiko@example.org")
    subprocess.run(["git", "-C", folder, *who, *args], check=True, timeout=30)


@_user_row("fetch (uvx)", "mcp-server-fetch")
async def check_fetch() -> str:
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        _write(folder, "index.html", "<h1>Footprints</h1><p>in the sand</p>")
        with child("-m", "http.server", port, "--directory", folder) as pages:
            wait_for_port(port, pages)
            async with Installation(python_programs("uv")) as ashiato:
                options = ("--ignore-robots-txt", "--allow-private-ips")
                await ashiato.import_server("fetch", _uvx("mcp-server-fetch", *options))
                trace = await ashiato.use(
                    ("fetch__fetch", {"url": f"http://127.0.0.1:{port}/"})
                )
    assert "in the sand" in trace.text, trace.text
    return "a web page as Markdown"


@_user_row("filesystem (npx)", "@modelcontextprotocol/server-filesystem")
async def check_filesystem() -> str:
    async with _home() as allowed, Installation() as ashiato:
        entry = _npx("@modelcontextprotocol/server-filesystem", allowed)
        await ashiato.import_server("files", entry, f"{allowed}:rw")
        path = f"{allowed}/note.txt"
        trace = await ashiato.use(
            ("files__write_file", {"path": path, "content": "Footprints in the sand"}),
            ("files__read_text_file", {"path": path}),
        )
        written = await asyncio.to_thread(Path(path).read_text)
    assert written == "Footprints in the sand", written
    assert written in trace.text, trace.text
    return "a file written and read in an allowed folder, each after an approval"


@_user_row("memory (npx)", "@modelcontextprotocol/server-memory")
async def check_memory() -> str:
    aiko = {"name": "Aiko", "entityType": "person", "observations": ["likes walking"]}
    async with Installation() as ashiato:
        await ashiato.import_server("memory", _npx("@modelcontextprotocol/server-memory"))
        await ashiato.use(("memory__create_entities", {"entities": [aiko]}))
        await ashiato.restart()
        trace = await ashiato.use(("memory__read_graph", {}))
    assert "likes walking" in trace.text, trace.text
    return "what was remembered is there after a restart of Ashiato"


@_user_row("sequential-thinking (npx)", "@modelcontextprotocol/server-sequential-thinking")
async def check_sequential_thinking() -> str:
    package = "@modelcontextprotocol/server-sequential-thinking"
    thought = {"thought": "One step.", "thoughtNumber": 1, "totalThoughts": 1}
    async with Installation() as ashiato:
        await ashiato.import_server("thinking", _npx(package))
        arguments = {**thought, "nextThoughtNeeded": False}
        trace = await ashiato.use(("thinking__sequentialthinking", arguments))
    assert "thoughtHistoryLength" in trace.text, trace.text
    return "a thought taken"


@_user_row("everything (npx)", "@modelcontextprotocol/server-everything")
async def check_everything() -> str:
    resource = "everything__get-resource-reference"
    async with Installation() as ashiato:
        entry = _npx("@modelcontextprotocol/server-everything")
        await ashiato.import_server("everything", entry)
        images = await ashiato.use(("everything__get-tiny-image", {}))
        links = {link.attributes["href"] for link in images.all("attached-image")}
        assert len(links) == 1, images.text
        image = await ashiato.download(links.pop())
        resources = await ashiato.use(
            (resource, {"resourceType": "Text", "resourceId": 1}),
            (resource, {"resourceType": "Blob", "resourceId": 1}),
            ("everything__get-resource-links", {"count": 2}),
        )
        progress = await ashiato.use(
            ("everything__trigger-long-running-operation", {"duration": 2, "steps": 4})
        )
    assert image.startswith(b"\x89PNG"), image[:20]
    assert resources.text.count("demo://") >= 4, resources.text
    assert "Last progress: 100%" in progress.text, progress.text
    return "an image, text and binary resources, links, progress"


@_user_row("everything (npx): its questions", "@modelcontextprotocol/server-everything")
async def check_questions() -> str:
    elicitation = "everything__trigger-elicitation-request"
    sampling = "everything__trigger-sampling-request"
    async with Installation() as ashiato:
        entry = _npx("@modelcontextprotocol/server-everything")
        await ashiato.import_server(
            "everything", entry, offers=elicitation, allows_sampling=True
        )
        form = await ashiato.use((elicitation, {}))
        sample = await ashiato.use((sampling, {"prompt": "?"}), sampled=["Forty-two."])
    # Once as what was answered, once in the tool's result.
    assert form.text.count("Aiko") >= 2, form.text
    assert sample.text.count("Forty-two.") >= 2, sample.text
    return "a form for the user, a prompt for the model"


FASTMCP = installed_version("fastmcp")
FASTMCP_SERVER = """\
import sys
from fastmcp import FastMCP
server = FastMCP("steps")
@server.tool
def count(path: str) -> str:
    "Count the steps."
    return f"{len(path)} steps"
server.run(transport=sys.argv[1], host="127.0.0.1", port=int(sys.argv[2]), show_banner=False)
"""


async def _check_fastmcp(transport: str, path: str) -> str:
    port = free_port()
    with child("-c", FASTMCP_SERVER, transport, port) as process:
        wait_for_port(port, process)
        async with Installation() as ashiato:
            entry = {"type": transport, "url": f"http://127.0.0.1:{port}{path}"}
            await ashiato.import_server("steps", entry)
            trace = await ashiato.use(("steps__count", {"path": "→→→"}))
    assert "3 steps" in trace.text, trace.text
    return "a tool called"


@row(AREA, "FastMCP over Streamable HTTP", FASTMCP, real=USER_WAY, played=MODEL)
async def check_http() -> str:
    return await _check_fastmcp("http", "/mcp")


@row(AREA, "FastMCP over SSE", FASTMCP, real=USER_WAY, played=MODEL)
async def check_sse() -> str:
    return await _check_fastmcp("sse", "/sse")
