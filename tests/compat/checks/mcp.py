"""Published MCP servers, started and called through the product's own connections."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from agents.engine import call_context
from agents.engine.call_context import (
    CallContext,
    Question,
    QuestionAnswer,
    SamplingReply,
    SamplingRequest,
)
from agents.engine.tool import ToolResult
from agents.tools.addresses import AllowList
from agents.tools.egress import Egress
from agents.tools.mcp.config import Folder, ServerConfig
from agents.tools.mcp.pool import ConnectionPool
from agents.tools.mcp.tool import McpTool
from tests.bench.processes import child, free_port, wait_for_port
from tests.compat.packages import (
    HOME,
    installed_version,
    node_modules,
    python_programs,
    version,
)
from tests.compat.rows import NotTried, row

AREA = "MCP servers"
LOOPBACK = Egress(allow=AllowList.read(["127.0.0.1"]))


class RecordingContext(CallContext):
    """Answers a server's questions and notes its progress, as a run would."""

    def __init__(self) -> None:
        self.progress: list[tuple[float, float | None]] = []
        self.questions: list[Question] = []
        self.requests: list[SamplingRequest] = []

    def report_progress(
        self, progress: float, total: float | None = None, message: str = ""
    ) -> None:
        self.progress.append((progress, total))

    async def ask(self, question: Question) -> QuestionAnswer:
        self.questions.append(question)
        return QuestionAnswer(action="accept", content=_fill_in(question.schema))

    async def sample(self, request: SamplingRequest) -> SamplingReply:
        self.requests.append(request)
        return SamplingReply(text="Forty-two.", model="scripted")


def _fill_in(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value for every required field of a form."""
    samples = {"string": "Aiko", "integer": 7, "number": 7.5, "boolean": True, "array": []}
    fields = schema.get("properties", {})
    return {name: samples[fields[name]["type"]] for name in schema.get("required", ())}


class Server:
    """A connected server, called through the same tools as in a run."""

    def __init__(self, config: ServerConfig) -> None:
        self.config = config
        self.context = RecordingContext()
        self._pool = ConnectionPool(egress=LOOPBACK)

    async def __aenter__(self) -> "Server":
        connection = await self._pool.ensure(self.config)
        tools = await connection.ready()
        self.tools = {tool.name: McpTool(connection, tool) for tool in tools}
        return self

    async def __aexit__(self, *about: object) -> None:
        await self._pool.close()

    async def call(self, tool: str, **arguments: Any) -> ToolResult:
        with call_context.use_context(self.context):
            result = await self.tools[tool].execute(arguments)
        assert not result.is_error, f"{tool}: {result.error}"
        return result


def _node(package: str, program: str, home: str, *args: str, **more: Any) -> ServerConfig:
    modules = node_modules()
    script = (modules / ".bin" / program).resolve()
    folders = (Folder(str(modules.parent)), *more.pop("folders", ()))
    return ServerConfig(
        name=package.rpartition("server-")[2],
        command="node",
        args=(str(script), *args),
        home=home,
        folders=folders,
        **more,
    )


def _python(program: str, home: str, *args: str, **more: Any) -> ServerConfig:
    programs = python_programs("mcp")
    folders = more.pop("folders", ()) or (Folder(str(programs.parent)),)
    return ServerConfig(
        name=program.removeprefix("mcp-server-"),
        command=str(programs / program),
        args=args,
        home=home,
        folders=folders,
        **more,
    )


def _npx() -> str:
    npx = shutil.which("npx")
    if npx is None:
        raise NotTried("npx isn't installed.")
    return npx


def _npm_settings() -> dict[str, str]:
    """Return what npm needs to know of this machine, which a server doesn't inherit."""
    return {name: text for name, text in os.environ.items() if name.startswith("npm_config_")}


@asynccontextmanager
async def _home() -> AsyncIterator[str]:
    HOME.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=HOME, prefix="home-") as folder:
        yield folder


@row(AREA, "time (stdio, Python)", version("mcp-server-time"))
async def check_time() -> str:
    async with _home() as home, Server(_python("mcp-server-time", home)) as server:
        result = await server.call("get_current_time", timezone="Asia/Tokyo")
    assert "+09:00" in result.output, result.output
    return "the time in Tokyo"


@row(AREA, "git (stdio, Python)", version("mcp-server-git"))
async def check_git() -> str:
    async with _home() as home, _home() as repository:
        _git(repository, "init", "--quiet")
        _write(repository, "readme.md", "Footprints")
        _git(repository, "add", "readme.md")
        _git(repository, "commit", "--quiet", "-m", "First step")
        programs = python_programs("mcp").parent
        shared = (Folder(str(programs)), Folder(repository, True))
        config = _python("mcp-server-git", home, "--repository", repository, folders=shared)
        async with Server(config) as server:
            log = await server.call("git_log", repo_path=repository)
    assert "First step" in log.output, log.output
    return "the log of a repository in an allowed folder"


def _write(folder: str, name: str, text: str) -> None:
    Path(folder, name).write_text(text)


def _git(folder: str, *args: str) -> None:
    who = ("-c", "user.name=Aiko", "-c", "user.email=aiko@example.org")
    subprocess.run(["git", "-C", folder, *who, *args], check=True, timeout=30)


@row(AREA, "fetch (stdio, Python)", version("mcp-server-fetch"))
async def check_fetch() -> str:
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        _write(folder, "index.html", "<h1>Footprints</h1><p>in the sand</p>")
        with child("-m", "http.server", port, "--directory", folder) as pages:
            wait_for_port(port, pages)
            async with _home() as home:
                config = _python(
                    "mcp-server-fetch", home, "--ignore-robots-txt", "--allow-private-ips"
                )
                async with Server(config) as server:
                    page = await server.call("fetch", url=f"http://127.0.0.1:{port}/")
    assert "in the sand" in page.output, page.output
    return "a web page as Markdown"


@row(AREA, "filesystem (stdio, Node)", version("@modelcontextprotocol/server-filesystem"))
async def check_filesystem() -> str:
    async with _home() as home, _home() as allowed:
        config = _node(
            "@modelcontextprotocol/server-filesystem",
            "mcp-server-filesystem",
            home,
            allowed,
            folders=(Folder(allowed, True),),
        )
        async with Server(config) as server:
            path = f"{allowed}/note.txt"
            await server.call("write_file", path=path, content="Footprints")
            read = await server.call("read_text_file", path=path)
    assert "Footprints" in read.output, read.output
    return "a file written and read in an allowed folder"


@row(AREA, "memory (stdio, Node)", version("@modelcontextprotocol/server-memory"))
async def check_memory() -> str:
    aiko = {"name": "Aiko", "entityType": "person", "observations": ["likes walking"]}
    package = "@modelcontextprotocol/server-memory"
    pinned = f"{package}@{version(package)}"
    async with _home() as home:
        # It keeps its file beside its program, which npx keeps in the server's home.
        config = ServerConfig(
            name="memory",
            command=_npx(),
            args=("-y", pinned),
            home=home,
            env=_npm_settings(),
            connect_timeout=120,
        )
        async with Server(config) as server:
            await server.call("create_entities", entities=[aiko])
        async with Server(config) as again:  # a new process, as after an idle shutdown
            graph = await again.call("read_graph")
    assert "likes walking" in graph.output, graph.output
    return "what was remembered is there after a restart"


@row(
    AREA,
    "sequential-thinking (stdio, Node)",
    version("@modelcontextprotocol/server-sequential-thinking"),
)
async def check_sequential_thinking() -> str:
    package = "@modelcontextprotocol/server-sequential-thinking"
    thought = {"thought": "One step.", "thoughtNumber": 1, "totalThoughts": 1}
    async with _home() as home:
        config = _node(package, "mcp-server-sequential-thinking", home)
        async with Server(config) as server:
            result = await server.call("sequentialthinking", **thought, nextThoughtNeeded=False)
    assert json.loads(result.output)["thoughtNumber"] == 1, result.output
    return "a thought taken"


@asynccontextmanager
async def _everything() -> AsyncIterator[Server]:
    package = "@modelcontextprotocol/server-everything"
    async with _home() as home, Server(_node(package, "mcp-server-everything", home)) as server:
        yield server


EVERYTHING = version("@modelcontextprotocol/server-everything")


@row(AREA, "everything: images", EVERYTHING)
async def check_images() -> str:
    async with _everything() as server:
        result = await server.call("get-tiny-image")
    [image] = result.attachments
    assert (image.kind, image.mime_type) == ("image", "image/png"), image.mime_type
    return f"a PNG of {len(image.data):,} bytes"


@row(AREA, "everything: resources", EVERYTHING)
async def check_resources() -> str:
    async with _everything() as server:
        text = await server.call("get-resource-reference", resourceType="Text", resourceId=1)
        blob = await server.call("get-resource-reference", resourceType="Blob", resourceId=1)
        links = await server.call("get-resource-links", count=2)
    assert "resource" in text.output.lower(), text.output
    assert blob.attachments or "resource" in blob.output.lower(), blob.output
    assert links.output.count("demo://") >= 2, links.output
    return "text and binary resources, links"


@row(AREA, "everything: progress", EVERYTHING)
async def check_progress() -> str:
    async with _everything() as server:
        await server.call("trigger-long-running-operation", duration=2, steps=4)
        steps = [progress for progress, _ in server.context.progress]
    assert steps[-1:] == [4], server.context.progress
    return f"{len(steps)} notifications"


@row(AREA, "everything: elicitation", EVERYTHING)
async def check_elicitation() -> str:
    async with _everything() as server:
        result = await server.call("trigger-elicitation-request")
        [question] = server.context.questions
    assert question.schema["properties"], question
    assert "Aiko" in result.output, result.output
    return f"a form with {len(question.schema['properties'])} fields"


@row(AREA, "everything: sampling", EVERYTHING)
async def check_sampling() -> str:
    async with _everything() as server:
        result = await server.call("trigger-sampling-request", prompt="What is it?")
        assert server.context.requests, "The server asked for nothing."
    assert "Forty-two." in result.output, result.output
    return "the model's reply came back"


FASTMCP = installed_version("fastmcp")
FASTMCP_SERVER = """\
import sys
from fastmcp import FastMCP
server = FastMCP("steps")
@server.tool
def count(path: str) -> int:
    "Count the steps."
    return len(path)
server.run(transport=sys.argv[1], host="127.0.0.1", port=int(sys.argv[2]), show_banner=False)
"""


async def _check_fastmcp(transport: str, path: str) -> str:
    port = free_port()
    with child("-c", FASTMCP_SERVER, transport, port) as process:
        wait_for_port(port, process)
        url = f"http://127.0.0.1:{port}{path}"
        kind: Any = transport
        async with Server(ServerConfig(name="steps", transport=kind, url=url)) as server:
            result = await server.call("count", path="→→→")
    assert result.output == "3", result.output
    return "a tool called"


@row(AREA, "FastMCP over Streamable HTTP", FASTMCP)
async def check_http() -> str:
    return await _check_fastmcp("http", "/mcp")


@row(AREA, "FastMCP over SSE", FASTMCP, is_short=True)
async def check_sse() -> str:
    return await _check_fastmcp("sse", "/sse")
