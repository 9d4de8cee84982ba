"""The MCP server and client by the official suite, and the server with published clients."""

import json
import re
import shutil
import sys
from typing import Any

from tests import wire
from tests.bench.processes import clean_environment
from tests.compat.packages import installed_version, node_path, version
from tests.compat.rows import NotTried, row
from tests.compat.served import Served, example, run, serve
from tests.compat.table import CONFORMANCE

WAYS_IN = "Ways in"
SUITE = "@modelcontextprotocol/conformance"
INSPECTOR = "@modelcontextprotocol/inspector"
REMOTE = "mcp-remote"
PAGE = "mcp-server.md"
DEMO = "the demo model"
COUNTS = re.compile(r"^Passed: (\d+)/(\d+)", re.MULTILINE)
SCENARIO = re.compile(r"^[✓✗] (\S+): (\d+) passed, (\d+) failed", re.MULTILINE)

# The names of agents that the suite calls as its tools, and the tool that each has.
AGENTS = {
    "test_simple_text": "",
    "test_error_handling": "search",
    "test_tool_with_progress": "calculator",
    "test_image_content": "suite_image",
    "test_audio_content": "suite_sound",
    "test_embedded_resource": "suite_file",
    "test_multiple_content_types": "suite_files",
    "test_elicitation": "suite_contact",
    "test_elicitation_sep1034_defaults": "suite_defaults",
    "test_elicitation_sep1330_enums": "suite_choices",
}
SERVER_SCENARIOS = (
    *("server-initialize", "ping", "server-sse-multiple-streams", "dns-rebinding-protection"),
    *("tools-list", "tools-call-simple-text", "tools-call-error", "tools-call-with-progress"),
    *("tools-call-image", "tools-call-audio", "tools-call-embedded-resource"),
    *("tools-call-mixed-content", "tools-call-elicitation"),
    *("elicitation-sep1034-defaults", "elicitation-sep1330-enums"),
    *("resources-list", "resources-read-text", "resources-templates-read"),
    *("prompts-list", "prompts-get-simple", "prompts-get-with-args"),
)
CLIENT_SCENARIOS = (
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
)
NOT_RUN = (
    "The suite prescribes tools and resources by name. Here, tools are agents: the "
    "installation has agents with these names, whose scripted model calls a tool that returns "
    "or asks what the suite expects, and each call gets the `question` that agents need. Its "
    "addresses of resources stand for a document and a trace. Left out is what isn't offered: "
    "`logging-set-level` and `tools-call-with-logging`, `tools-call-sampling`, "
    "`completion-complete`, `resources-subscribe` and `resources-unsubscribe`, "
    "`resources-read-binary`, `prompts-get-embedded-resource` and `prompts-get-with-image` "
    "(documents and prompts are texts), `server-sse-polling` (a tool that closes its own "
    "stream), and `json-schema-2020-12` (a tool with a prescribed schema)."
)
PREPARE = """
import django
django.setup()
from django.contrib.auth import get_user_model
from django.utils import timezone
from agents.models import Agent, Collection, Document, Run, ToolRegistration
from agents.models.knowledge.documents import DocumentPart
from chat.models import Prompt
user = get_user_model().objects.get(username="demo")
for name, tool in {agents!r}.items():
    Agent.objects.create(name=name).tools.set(ToolRegistration.objects.filter(name=tool))
texts = {{
    "test_simple_prompt": "This is a simple prompt for testing.",
    "test_prompt_with_arguments":
        "Prompt with arguments: arg1='{{{{arg1}}}}', arg2='{{{{arg2}}}}'",
}}
for name, text in texts.items():
    Prompt.objects.create(user=user, name=name, title=name, text=text)
document = Document.objects.create(
    id=123, collection=Collection.objects.create(name="Suite", owner=user), title="Static",
    source="static.md", status="ready", indexed_at=timezone.now(),
)
DocumentPart.objects.create(document=document, number=1, kind="text", text="A static text.")
Run.objects.create(id=123, user=user, agent_name="helper", query="What is 6 * 7?")
"""


def _npx(package: str) -> tuple[str, ...]:
    if shutil.which("npx") is None:
        raise NotTried("npx isn't installed.")
    return ("npx", "-y", f"{package}@{version(package)}")


@row(
    CONFORMANCE,
    "MCP server",
    version(SUITE),
    real="the official suite, a new installation",
    played="the model, the tools of its agents",
    notes=NOT_RUN,
)
async def check_server() -> str:
    async with (
        wire.WireServer(_reply) as model,
        serve(
            server=("-m", "tests.compat.suite_server"),
            script=PREPARE.format(agents=AGENTS),
            model_url=model.url,
            tools="tests.compat.suite_tools",
        ) as ashiato,
    ):
        passed = 0
        failed = []
        for scenario in SERVER_SCENARIOS:
            suite = (*_npx(SUITE), "server", "--url", f"{ashiato.url}/mcp")
            output = await _run_suite(*suite, "--scenario", scenario)
            [counts] = COUNTS.findall(output)
            passed += int(counts[0])
            failed += [scenario] if counts[0] != counts[1] else []
        runs = json.loads(await run("curl", "-s", f"{ashiato.url}/api/v1/runs"))["items"]
    assert not failed, failed
    # An error would be text, too.
    ended = {item["agent"]: item["status"] for item in runs if item["agent"] in AGENTS}
    expected = dict.fromkeys(AGENTS, "completed") | {"test_error_handling": "failed"}
    assert ended == expected, ended
    return f"{passed} of {passed}"


def _reply(request: wire.Request) -> wire.Reply:
    """Call the agent's tool, then answer; the agent with a search fails."""
    tools = [tool["function"]["name"] for tool in request.body.get("tools") or ()]
    if "search" in tools:
        return wire.fail(400, "This model intentionally fails.")
    if tools and request.body["messages"][-1]["role"] == "user":
        arguments = {"expression": "6 * 7"} if tools == ["calculator"] else {}
        return wire.call((tools[0], json.dumps(arguments)))
    return wire.say("This is a simple text response for testing.")


@row(CONFORMANCE, "MCP client", version(SUITE), real="the official suite, our connection")
async def check_client() -> str:
    client = f"{sys.executable} -m tests.compat.conformance_client"
    suite = (*_npx(SUITE), "client", "--command", client, "--timeout", "120000")
    passed = 0
    failed = []
    for scenario in CLIENT_SCENARIOS:  # one by one: some measure time
        output = await _run_suite(*suite, "--scenario", scenario)
        [counts] = COUNTS.findall(output)
        passed += int(counts[0])
        failed += [scenario] if counts[0] != counts[1] else []
    output = await _run_suite(*suite, "--suite", "auth")
    for name, count, failures in SCENARIO.findall(output):
        passed += int(count)
        failed += [name] if int(failures) else []
    assert "auth/" in output, output[-500:]
    assert not failed, failed
    return f"{passed} of {passed}"


async def _run_suite(*command: str) -> str:
    return await run(*command, env={"PATH": node_path()}, status=None)


def _client_row(name: str, package: str) -> Any:
    return row(WAYS_IN, name, version(package), real="the client", played=DEMO)


@_client_row("MCP inspector (command line)", INSPECTOR)
async def check_inspector() -> str:
    async with serve() as ashiato:
        command = _filled(example(PAGE, "sh"), ashiato)
        _npx(INSPECTOR)
        listed = json.loads(await run("sh", "-c", command, env={"PATH": node_path()}))
    names = [tool["name"] for tool in listed["tools"]]
    assert "helper" in names, names
    return f"{len(names)} tools"


@_client_row("Claude Desktop, by mcp-remote", REMOTE)
async def check_claude_desktop() -> str:
    """Start what Claude Desktop would start, from its configuration on the page."""
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport

    _npx(REMOTE)
    async with serve() as ashiato:
        configuration = json.loads(_filled(example(PAGE, "json"), ashiato))
        program = configuration["mcpServers"]["ashiato"]
        env = clean_environment() | program.pop("env")
        transport = StdioTransport(**program, env=env, keep_alive=False)
        async with Client(transport, timeout=120, init_timeout=240) as client:
            result = await client.call_tool("helper", {"question": "What is 6 * 7?"})
    assert "42" in result.content[0].text, result
    return "an agent asked"


@row(WAYS_IN, "FastMCP", installed_version("fastmcp"), real="the client", played=DEMO)
async def check_fastmcp() -> str:
    async with serve() as ashiato:
        variables = {"ASHIATO_URL": ashiato.url, "ASHIATO_KEY": ashiato.key}
        output = await run(sys.executable, "-c", example(PAGE, "python"), env=variables)
    assert "42" in output, output
    assert "calculator called" in output, output
    return "an agent asked, its steps, a trace"


def _filled(text: str, ashiato: Served) -> str:
    """Return an example for this installation, with the versions that are pinned."""
    for package in (INSPECTOR, REMOTE):
        text = text.replace(package, f"{package}@{version(package)}")
    return ashiato.fill(text)
