"""Prepares a server: users with chats, and their tools."""

import asyncio
import json
import sys
from pathlib import Path

from tests.bench import accounts  # sets Django up

from agents.catalog import mcp_servers  # isort: skip
from agents.models import Agent, McpServer, ToolRegistration  # isort: skip
from django.contrib.auth import get_user_model  # isort: skip


# Agents whose models can't be reached, each for another reason.
AGENTS = {"refused": "openai/away", "unknown": "groq/away", "secure": "xai/away"}
TALKER = "talker"  # without length limits
PLAIN = Path(__file__).parents[1] / "tools" / "mcp_servers" / "plain.py"


def set_up(people: int, chats: int, notes: str) -> list[dict]:
    own = ToolRegistration.objects.filter(name__in=["pay", "sign", "look", "wait"])
    own.exclude(name="sign").update(approval="never")
    for agent in Agent.objects.filter(name__in=["helper", "careful", "planner"]):
        agent.tools.add(*own)
    Agent.objects.update(max_steps=12)
    for name, model in AGENTS.items():
        Agent.objects.get_or_create(name=name, defaults={"model": model})
    much = dict.fromkeys(("max_input_tokens", "max_output_tokens"), 1_000_000)
    Agent.objects.get_or_create(name=TALKER, defaults=much)
    if notes:
        _connect(notes)
    return accounts.make(people, chats)


def _connect(notes: str) -> None:
    """Connect a misbehaving MCP server, which logs to a file."""
    server = McpServer.objects.create(
        name="plain",
        transport="stdio",
        command=sys.executable,
        args=[str(PLAIN), notes, "deaf", "chatty"],
        folders=f"{Path(notes).parent}:rw",
        timeout=20,
    )
    asyncio.run(_sync(server))
    tools = ToolRegistration.objects.filter(server=server)
    tools.update(approval="never", timeout=20)
    tools.filter(name__endswith="never").update(timeout=2)
    Agent.objects.get(name="helper").tools.add(*tools)


async def _sync(server: McpServer) -> None:
    administrator = await get_user_model().objects.aget(username="demo")
    try:
        await mcp_servers.sync(server, administrator)
    finally:
        await mcp_servers.shut_down()


if __name__ == "__main__":
    json.dump(set_up(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]), sys.stdout)
