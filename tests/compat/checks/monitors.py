"""Monitors that receive our traces over OTLP."""

import asyncio
import json
import tempfile
import urllib.request
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.bench.processes import child, free_port, wait_for_page
from tests.compat.packages import python_programs, version
from tests.compat.product import ask
from tests.compat.rows import row
from tests.wire import Reply, WireServer, call, say

START_SECONDS = 600  # one that dies is noticed at once
ARRIVE_SECONDS = 120
MODEL, SNAPSHOT = "gpt-4o-mini", "gpt-4o-mini-2024-07-18"
TOTALS = """{ projects { edges { node {
    name traceCount tokenCountTotal costSummary { total { cost } }
} } } }"""


@row(
    "Monitors",
    "Phoenix (OTLP/HTTP)",
    version("arize-phoenix"),
    real="the monitor, Ashiato, a run with a tool call",
    played="the model",
)
async def check_phoenix() -> str:
    program, port = python_programs("phoenix") / "phoenix", free_port()
    with tempfile.TemporaryDirectory() as folder:
        log, url = Path(folder, "log"), f"http://127.0.0.1:{port}"
        env = {
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_PORT": str(port),
            "PHOENIX_GRPC_PORT": str(free_port()),
            "PHOENIX_WORKING_DIR": folder,
            "PHOENIX_TELEMETRY_ENABLED": "false",
        }
        with child("serve", program=program, env=env, log=log) as process:
            wait_for_page(f"{url}/healthz", process, log, START_SECONDS)
            await _ask_sum(f"{folder}/data", url)
            project = await _wait_for_trace(url)
            spans = _get(f"{url}/v1/projects/default/spans?limit=50")["data"]
    kinds = sorted(span["span_kind"] for span in spans)
    assert kinds == ["AGENT", "LLM", "LLM", "TOOL"], kinds
    [root] = [span for span in spans if span["span_kind"] == "AGENT"]
    id = root["context"]["span_id"]
    assert all(span["parent_id"] == id for span in spans if span is not root), spans
    models = {s["attributes"]["llm.model_name"] for s in spans if s["span_kind"] == "LLM"}
    assert models == {SNAPSHOT}, models
    assert project["tokenCountTotal"] == 36, project
    cost = project["costSummary"]["total"]["cost"]
    assert cost, project
    return f"the tree of 4 spans, 36 tokens, ${cost:.7f}"


async def _ask_sum(data: str, url: str) -> None:
    script = [call(("calculator", '{"expression": "6*7"}')), say("It is 42.")]
    async with WireServer([_named(reply) for reply in script]) as server:
        settings = {
            "ASHIATO_MODEL": f"openai/{MODEL}",
            "ASHIATO_MODEL_URL": server.url,
            "ASHIATO_MODEL_KEY": "sk-compat",
            "ASHIATO_OTLP_ENDPOINT": url,
        }
        answer = await ask("What is 6*7?", data, settings)
    assert "42" in answer, answer


def _named(reply: Reply) -> Reply:
    """Return the reply with the model's name as the provider writes it."""
    parts = [
        {**part, "model": SNAPSHOT} if isinstance(part, Mapping) else part
        for part in reply.parts
    ]
    return replace(reply, parts=tuple(parts))


async def _wait_for_trace(url: str) -> dict[str, Any]:
    async with asyncio.timeout(ARRIVE_SECONDS):
        while True:
            found = _get(f"{url}/graphql", {"query": TOTALS})["data"]["projects"]["edges"]
            projects = [edge["node"] for edge in found if edge["node"]["traceCount"]]
            if projects and projects[0]["costSummary"]["total"]["cost"] is not None:
                return dict(projects[0])
            await asyncio.sleep(0.5)


def _get(url: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as response:
        return json.load(response)
