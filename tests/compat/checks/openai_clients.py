"""The API under /v1: the compliance suite of Open Responses, and published clients."""

import json
import os
import shutil
import sys

from tests import wire
from tests.compat.packages import (
    HOME,
    installed_version,
    node_packages,
    python_programs,
    version,
)
from tests.compat.rows import NotTried, row
from tests.compat.served import example, run, serve
from tests.compat.table import CONFORMANCE

WAYS_IN = "Ways in"
PAGE = "openai.md"
DEMO = "the demo model"
BUN = "bun"
SUITE_COPY = HOME / "open-responses" / "suite"
# The suite is a part of a repository (openresponses/openresponses) without releases.
SUITE_VARIABLE = "ASHIATO_OPEN_RESPONSES"
SPECIFICATION = "2026-04-24"
AGENT = "compliance"
# An agent without tools of its own, whose model sees images and calls what it is offered.
MAKE_AGENT = """
import django
django.setup()
from agents.models import Agent, LanguageModel, ModelConnection
connection = ModelConnection.objects.create(
    name="scripted", provider="openai", prefix="openai", base_url={url!r}, api_key="none"
)
LanguageModel.objects.create(
    label="scripted", model="openai/scripted", connection=connection, image_input="yes"
)
Agent.objects.create(name={agent!r}, model="scripted")
"""


def _reply(request: wire.Request) -> wire.Reply:
    """Call a function that the program offers, once; otherwise answer."""
    body = request.body
    tools = [tool["function"]["name"] for tool in body.get("tools") or ()]
    if tools and body["messages"][-1]["role"] == "user":
        return wire.call((tools[0], json.dumps({"location": "San Francisco, CA"})))
    return wire.say("Hello from here.", chunks=3)


@row(
    CONFORMANCE,
    "Open Responses",
    SPECIFICATION,
    real="the official suite, a new installation",
    played="the model",
)
async def check_open_responses() -> str:
    folder = os.environ.get(SUITE_VARIABLE, "")
    if not folder:
        raise NotTried(f"{SUITE_VARIABLE} doesn't name the folder of the suite.")
    # It finds its packages beside it.
    ignored = shutil.ignore_patterns("node_modules", ".git")
    shutil.copytree(folder, SUITE_COPY, ignore=ignored, dirs_exist_ok=True)
    packages = await node_packages("open-responses", BUN, "zod")
    bun = packages / "node_modules" / ".bin" / BUN
    async with wire.WireServer(_reply) as model:
        script = MAKE_AGENT.format(url=model.url, agent=AGENT)
        async with serve(script=script) as ashiato:
            options = ("--base-url", f"{ashiato.url}/v1", "--model", AGENT, "--json")
            suite = ("run", str(SUITE_COPY / "bin" / "compliance-test.ts"), *options)
            command = (str(bun), *suite, "--api-key", ashiato.key)
            report = json.loads(await run(*command, status=None))
    summary = report["summary"]
    failed = [result["name"] for result in report["results"] if result["status"] == "failed"]
    assert not failed, failed
    assert summary["passed"], summary
    return f"{summary['passed']} of {summary['total']}"


@row(WAYS_IN, "OpenAI SDK (Python)", installed_version("openai"), real="it", played=DEMO)
async def check_openai_python() -> str:
    await _run_python(sys.executable, 0)
    return "an agent asked, its answer streamed, its steps as items"


@row(WAYS_IN, "LangChain", version("langchain-openai"), real="it", played=DEMO)
async def check_langchain() -> str:
    await _run_python(str(python_programs("langchain") / "python"), 1)
    return "an agent asked"


@row(WAYS_IN, "LlamaIndex", version("llama-index-llms-openai-like"), real="it", played=DEMO)
async def check_llama_index() -> str:
    await _run_python(str(python_programs("llama-index") / "python"), 2)
    return "an agent asked, its answer streamed"


@row(WAYS_IN, "Pydantic AI", version("pydantic-ai-slim"), real="it", played=DEMO)
async def check_pydantic_ai() -> str:
    await _run_python(str(python_programs("pydantic-ai") / "python"), 3)
    return "an agent asked"


@row(WAYS_IN, "OpenAI SDK (Node)", version("openai"), real="it", played=DEMO)
async def check_openai_node() -> str:
    await _run_node("openai-node", 0, "openai")
    return "an agent asked, its answer streamed"


@row(WAYS_IN, "Vercel AI SDK", version("ai"), real="it", played=DEMO)
async def check_ai_sdk() -> str:
    await _run_node("ai-sdk", 1, "ai", "@ai-sdk/openai-compatible")
    return "an agent asked, its answer streamed"


@row(WAYS_IN, "curl", real="it", played=DEMO)
async def check_curl() -> str:
    if shutil.which("curl") is None:
        raise NotTried("curl isn't installed.")
    async with serve() as ashiato:
        output = await run("sh", "-c", ashiato.fill(example(PAGE, "sh")))
    assert "42" in output, output
    return "an agent asked"


async def _run_python(program: str, number: int) -> None:
    async with serve() as ashiato:
        output = await run(program, "-c", ashiato.fill(example(PAGE, "python", number)))
    assert "42" in output, output


async def _run_node(name: str, number: int, *packages: str) -> None:
    folder = await node_packages(name, *packages)
    async with serve() as ashiato:
        script = folder / "ask.mjs"
        script.write_text(ashiato.fill(example(PAGE, "js", number)))
        output = await run("node", str(script))
    assert "42" in output, output
