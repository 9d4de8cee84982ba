"""The MCP server and client by the official suite, and the server with published clients."""

import json
import re
import shutil
import sys
from typing import Any

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

# Of the suite's server part; the others call tools and read resources that it prescribes by
# name and content, which only a server made for the suite has.
SERVER_SCENARIOS = {
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "prompts-get-simple",
    "prompts-get-with-args",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
}
CLIENT_SCENARIOS = (
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
)
NOT_RUN = (
    "The scenarios `tools-call-*`, `elicitation-*`, `resources-read-*`, "
    "`resources-templates-read`, `prompts-get-embedded-resource` and `prompts-get-with-image` "
    "use tools and resources that the suite prescribes by name and content, such as a tool "
    "`test_image_content`; here, tools are agents. `logging-set-level`, `completion-complete`, "
    "`resources-subscribe` and `resources-unsubscribe` are about optional capabilities that "
    "aren't offered."
)
PROMPTS = """
import django
django.setup()
from django.contrib.auth import get_user_model
from chat.models import Prompt
user = get_user_model().objects.get(username="demo")
texts = {
    "test_simple_prompt": "This is a simple prompt for testing.",
    "test_prompt_with_arguments":
        "Prompt with arguments: arg1='{{arg1}}', arg2='{{arg2}}'",
}
for name, text in texts.items():
    Prompt.objects.create(user=user, name=name, title=name, text=text)
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
    notes=NOT_RUN,
)
async def check_server() -> str:
    async with serve(needs_key=False, script=PROMPTS) as ashiato:
        passed = 0
        failed = []
        for scenario in sorted(SERVER_SCENARIOS):
            suite = (*_npx(SUITE), "server", "--url", f"{ashiato.url}/mcp")
            output = await _run_suite(*suite, "--scenario", scenario)
            [counts] = COUNTS.findall(output)
            passed += int(counts[0])
            failed += [scenario] if counts[0] != counts[1] else []
    assert not failed, failed
    return f"{passed} of {passed}"


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
    text = text.replace("https://ashiato.example.com", ashiato.url)
    return text.replace("ash_…", ashiato.key)
