"""Plants secrets directly in the product's database, and creates users to look for them."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from tests.bench import accounts  # sets Django up

from agents.access import api_keys  # isort: skip
from agents.catalog import mcp_servers  # isort: skip
from agents.models import Agent, McpServer, ToolRegistration  # isort: skip
from agents.accounts.authentication import factors  # isort: skip
from django.contrib.auth import get_user_model  # isort: skip
from tests.access import world  # isort: skip
from tests.language_models import make_model  # isort: skip

PLAIN = Path(__file__).parents[1] / "tools" / "mcp_servers" / "plain.py"
ECHO = {"name": "echo", "description": "Says what it was sent.", "parameters": {}}


def plant(secrets: dict[str, str], provider: str, notes: str) -> dict[str, Any]:
    helper = Agent.objects.get(name="helper")
    made = world.create_world(helper, get_user_model().objects)
    people = {user.username: user for user in get_user_model().objects.all()}
    people["owner"].set_password(secrets["password"])
    people["owner"].save()
    factors.add_authenticator(people["reader"], secrets["totp"], 0)
    codes = factors.create_recovery_codes(people["reader"])
    tools = [*_servers(secrets, provider, notes, people["root"]), _endpoint(secrets, provider)]
    helper.tools.add(*tools)
    _models(secrets, provider)
    cookies = {role: accounts.signed_in(people[role]) for role in world.ROLES[1:]}
    _key, token = api_keys.create(people["owner"], "CI", ["ask", "read"])
    return {"cookies": cookies, "codes": codes, "ids": made.ids, "api_key": token}


def _servers(
    secrets: dict[str, str], provider: str, notes: str, root: Any
) -> list[ToolRegistration]:
    McpServer.objects.create(
        name="plain",
        transport="stdio",
        command=sys.executable,
        args=[str(PLAIN), notes],
        env={"API_KEY": secrets["MCP environment"]},
    )
    McpServer.objects.create(
        name="far",
        transport="http",
        url=f"{provider}/mcp",
        headers={"Authorization": f"Bearer {secrets['MCP header']}"},
        oauth_client_id="ashiato",
        oauth_client_secret=secrets["MCP client secret"],
    )
    asyncio.run(_look(root))
    tools = ToolRegistration.objects.filter(source="mcp")
    tools.update(approval="never")
    return list(tools)


async def _look(root: Any) -> None:
    try:
        async for server in McpServer.objects.all():
            await mcp_servers.sync(server, root)
    finally:
        await mcp_servers.shut_down()


def _endpoint(secrets: dict[str, str], provider: str) -> ToolRegistration:
    return ToolRegistration.objects.create(
        name="echo",
        source="http",
        definition=ECHO,
        endpoint=f"{provider}/echo",
        headers={"X-Api-Key": secrets["tool header"]},
        method="GET",
        approval="always",
    )


def _models(secrets: dict[str, str], provider: str) -> None:
    for label, kind in {"kept": "openai", "littled": "anthropic"}.items():
        make_model(
            label=label,
            provider=kind,
            model=f"{kind}/scripted",
            base_url=f"{provider}/v1" if kind == "openai" else provider,
            api_key=secrets[f"{label} model key"],
        )
        Agent.objects.create(name=label, model=label)


if __name__ == "__main__":
    json.dump(plant(json.loads(sys.argv[1]), *sys.argv[2:]), sys.stdout)
