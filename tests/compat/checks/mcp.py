"""Published MCP servers: imported and used like a user does, or called by our connection."""

import asyncio
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
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
from tests.compat.installation import Installation
from tests.compat.packages import (
    HOME,
    installed_version,
    node_modules,
    python_programs,
    version,
)
from tests.compat.rows import Check, NotTried, row

AREA = "MCP servers"
USER_WAY = "the server, its import in the console, an agent's run, an approval, the trace"
CONNECTION = "the server, our connection to it"
MODEL = "the model"
RUN = "the run and the user"
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
        try:
            connection = await self._pool.ensure(self.config)
            tools = await connection.ready()
        except BaseException:
            await self._pool.close()  # or its process would outlive the row
            raise
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
    assert "+09:00" in trace, trace
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
    assert "First step" in trace, trace
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
    assert "in the sand" in trace, trace
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
    assert written in trace, trace
    return "a file written and read in an allowed folder, each after an approval"


@_user_row("memory (npx)", "@modelcontextprotocol/server-memory")
async def check_memory() -> str:
    aiko = {"name": "Aiko", "entityType": "person", "observations": ["likes walking"]}
    async with Installation() as ashiato:
        await ashiato.import_server("memory", _npx("@modelcontextprotocol/server-memory"))
        await ashiato.use(("memory__create_entities", {"entities": [aiko]}))
        await ashiato.restart()
        trace = await ashiato.use(("memory__read_graph", {}))
    assert "likes walking" in trace, trace
    return "what was remembered is there after a restart of Ashiato"


@_user_row("sequential-thinking (npx)", "@modelcontextprotocol/server-sequential-thinking")
async def check_sequential_thinking() -> str:
    package = "@modelcontextprotocol/server-sequential-thinking"
    thought = {"thought": "One step.", "thoughtNumber": 1, "totalThoughts": 1}
    async with Installation() as ashiato:
        await ashiato.import_server("thinking", _npx(package))
        arguments = {**thought, "nextThoughtNeeded": False}
        trace = await ashiato.use(("thinking__sequentialthinking", arguments))
    assert "thoughtHistoryLength" in trace, trace
    return "a thought taken"


@asynccontextmanager
async def _everything() -> AsyncIterator[Server]:
    package = "@modelcontextprotocol/server-everything"
    async with _home() as home, Server(_node(package, "mcp-server-everything", home)) as server:
        yield server


EVERYTHING = version("@modelcontextprotocol/server-everything")


@row(AREA, "everything: images", EVERYTHING, real=CONNECTION, played=RUN)
async def check_images() -> str:
    async with _everything() as server:
        result = await server.call("get-tiny-image")
    [image] = result.attachments
    assert (image.kind, image.mime_type) == ("image", "image/png"), image.mime_type
    return f"a PNG of {len(image.data):,} bytes"


@row(AREA, "everything: resources", EVERYTHING, real=CONNECTION, played=RUN)
async def check_resources() -> str:
    async with _everything() as server:
        text = await server.call("get-resource-reference", resourceType="Text", resourceId=1)
        blob = await server.call("get-resource-reference", resourceType="Blob", resourceId=1)
        links = await server.call("get-resource-links", count=2)
    assert "resource" in text.output.lower(), text.output
    assert blob.attachments or "resource" in blob.output.lower(), blob.output
    assert links.output.count("demo://") >= 2, links.output
    return "text and binary resources, links"


@row(AREA, "everything: progress", EVERYTHING, real=CONNECTION, played=RUN)
async def check_progress() -> str:
    async with _everything() as server:
        await server.call("trigger-long-running-operation", duration=2, steps=4)
        steps = [progress for progress, _ in server.context.progress]
    assert steps[-1:] == [4], server.context.progress
    return f"{len(steps)} notifications"


@row(AREA, "everything: elicitation", EVERYTHING, real=CONNECTION, played=RUN)
async def check_elicitation() -> str:
    async with _everything() as server:
        result = await server.call("trigger-elicitation-request")
        [question] = server.context.questions
    assert question.schema["properties"], question
    assert "Aiko" in result.output, result.output
    return f"a form with {len(question.schema['properties'])} fields"


@row(AREA, "everything: sampling", EVERYTHING, real=CONNECTION, played=RUN)
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


@row(AREA, "FastMCP over Streamable HTTP", FASTMCP, real=CONNECTION, played=RUN)
async def check_http() -> str:
    return await _check_fastmcp("http", "/mcp")


@row(AREA, "FastMCP over SSE", FASTMCP, real=CONNECTION, played=RUN, is_short=True)
async def check_sse() -> str:
    return await _check_fastmcp("sse", "/sse")
