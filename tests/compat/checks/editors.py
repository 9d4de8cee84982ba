"""`ashiato acp` with clients of the Agent Client Protocol, as editors have them."""

import json
import shutil
import sys
from collections import Counter
from typing import Any

import acp
from acp import schema

from tests.bench.processes import clean_environment
from tests.compat.packages import HERE, ROOT, installed_version, node_packages, version
from tests.compat.rows import row
from tests.compat.served import Served, example, run, serve

WAYS_IN = "Ways in"
PAGE = "command-line.md"
DEMO = "the demo model"
SDK = "@agentclientprotocol/sdk"
QUESTION = "What is 6 * 7?"


def _agent_server(ashiato: Served, agent: str) -> dict[str, Any]:
    """Return what an editor starts, from its settings on the page, for another agent."""
    settings = json.loads(example(PAGE, "json"))["agent_servers"]["Ashiato"]
    assert settings["command"] == "ashiato", settings
    arguments = [agent if value == "helper" else value for value in settings["args"]]
    environment = {
        "ASHIATO_SERVER": ashiato.url,
        "ASHIATO_API_KEY": ashiato.key,
        "PYTHONPATH": str(ROOT),
    }
    return {
        "command": sys.executable,
        "args": ["-m", "project.cli", *arguments],
        "env": settings["env"] | environment,
    }


@row(WAYS_IN, "ACP SDK (TypeScript)", version(SDK), real="its client", played=DEMO)
async def check_typescript() -> str:
    script = await node_packages("acp", SDK) / "editor.mjs"
    shutil.copy(HERE / "acp_editor.mjs", script)
    told = []
    async with serve() as ashiato:
        for agent in ("helper", "careful"):
            variables = {"AGENT_SERVER": json.dumps(_agent_server(ashiato, agent))}
            told.append(json.loads(await run("node", str(script), env=variables)))
    helper, careful = told
    assert "42" in helper["answer"], helper
    assert helper["stopReason"] == "end_turn", helper
    assert helper["agent"] == "helper", helper
    assert not helper["requests"], helper
    assert len(careful["requests"]) == 1, careful
    kinds = {"agent_thought_chunk", "tool_call", "tool_call_update", "agent_message_chunk"}
    assert kinds <= set(careful["updates"]), careful
    return "thoughts, a tool call, an approval, the answer streamed"


class Editor(acp.Client):
    """Approves every call, and counts what it is told."""

    def __init__(self) -> None:
        self.updates: Counter[str] = Counter()
        self.answer = ""

    async def session_update(self, session_id: str, update: Any, **_options: Any) -> None:
        self.updates[update.session_update] += 1
        if update.session_update == "agent_message_chunk":
            self.answer += update.content.text

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_options: Any
    ) -> acp.RequestPermissionResponse:
        self.updates["request_permission"] += 1
        [approve] = [option for option in options if option.kind == "allow_once"]
        outcome = schema.AllowedOutcome(outcome="selected", option_id=approve.option_id)
        return acp.RequestPermissionResponse(outcome=outcome)


@row(
    WAYS_IN,
    "ACP SDK (Python)",
    installed_version("agent-client-protocol"),
    real="its client",
    played=DEMO,
)
async def check_python() -> str:
    editor = Editor()
    async with serve() as ashiato:
        server = _agent_server(ashiato, "careful")
        env = clean_environment() | server["env"]
        async with acp.spawn_agent_process(
            editor, server["command"], *server["args"], env=env
        ) as (agent, _process):
            await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
            session = await agent.new_session(cwd=str(ROOT), mcp_servers=[])
            prompt = [acp.text_block(QUESTION)]
            response = await agent.prompt(session_id=session.session_id, prompt=prompt)
            listed = await agent.list_sessions()
    assert response.stop_reason == "end_turn", response
    assert "42" in editor.answer, editor.answer
    assert editor.updates["request_permission"] == 1, editor.updates
    assert len(listed.sessions) == 1, listed
    return "an approval, the answer streamed, the session among the chats"
