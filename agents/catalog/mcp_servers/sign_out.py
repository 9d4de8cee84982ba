"""Ends sign-ins to MCP servers: deletes them here and revokes their tokens there."""

import asyncio
import logging
from dataclasses import replace
from importlib import import_module

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db.models import QuerySet

from agents.db import database
from agents.engine.errors import ToolError
from agents.models import McpSignIn
from agents.tools.mcp.sign_in import Credentials

from . import sign_ins
from .connections import disconnect, egress

logger = logging.getLogger(__name__)
REVOKE_SECONDS = 5.0


def end(rows: QuerySet[McpSignIn]) -> None:
    """Delete sign-ins and revoke their tokens, as far as their servers can be reached."""
    if ended := _delete(rows):
        async_to_sync(_revoke_all)(ended)


async def end_of_user(user: User) -> None:
    """Sign a user out of all servers."""
    if ended := await database.run(_delete, McpSignIn.objects.filter(user=user)):
        await _revoke_all(ended)


def _delete(rows: QuerySet[McpSignIn]) -> list[tuple[str, Credentials]]:
    """Return what was deleted, with the URLs of its servers."""
    deleted = list(rows.select_related("server"))
    McpSignIn.objects.filter(pk__in=[row.pk for row in deleted]).delete()
    for name, user in {(row.server.name, row.user_id) for row in deleted}:
        disconnect(name, user)
    return [(row.url, sign_ins.credentials_of(row)) for row in deleted]


async def _revoke_all(all_credentials: list[tuple[str, Credentials]]) -> None:
    oauth = await asyncio.to_thread(import_module, "agents.tools.mcp.connection.oauth")
    policy = replace(egress(), timeout=REVOKE_SECONDS)

    async def revoke(url: str, credentials: Credentials) -> None:
        try:
            await oauth.revoke(url, credentials, policy)
        except ToolError as error:
            logger.warning("Can't revoke a sign-in to %s: %s", url, error)

    await asyncio.gather(*(revoke(*pair) for pair in all_credentials))
