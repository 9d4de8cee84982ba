"""Saved OAuth sign-ins to MCP servers."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urljoin

from django.contrib.auth.models import User
from django.db.models import F, Q, QuerySet
from django.urls import reverse
from django.utils import timezone

from agents.db import database
from agents.models import McpServer, McpSignIn
from agents.models.secret import UnreadableSecret
from agents.models.types import AnyUser
from agents.tools.mcp.sign_in import AuthorizationResponse, Credentials, SignInRequired


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedSignIn:
    """A saved sign-in, for connections of runs: nobody is there to sign in again."""

    server: int
    name: str
    user: int | None
    url: str
    redirect_uri: str
    signed_in_at: str  # a later sign-in needs another connection

    @property
    def metadata_url(self) -> str:
        return metadata_url(self.redirect_uri)

    async def load(self) -> Credentials:
        return await database.run(_load, self.server, self.user, self.url)

    async def save_client(self, client: Mapping[str, Any]) -> None:
        rows = _rows(self.server, self.user, self.url)
        await database.run(rows.update, client=dict(client))

    async def save_tokens(self, credentials: Credentials) -> None:
        await database.run(_refresh, self.server, self.user, self.url, credentials)

    async def authorize(self, url: str, rejected: Mapping[str, Any]) -> None:
        await database.run(_forget_rejected, self.server, self.user, rejected)
        raise self._required()

    async def response(self) -> AuthorizationResponse:
        raise self._required()

    def _required(self) -> SignInRequired:
        return SignInRequired(self.name, is_shared=self.user is None)


def owner(server: McpServer, user: AnyUser) -> AnyUser | None:
    """Return whose sign-in a user needs: their own, or everyone's."""
    return user if server.sign_in == McpServer.SignIn.USER else None


def page_url(server: McpServer) -> str:
    """Return the page where users sign in."""
    return reverse("runs:mcp_sign_in", args=[server.pk])


def metadata_url(redirect_uri: str) -> str:
    """Return the URL of our client metadata document; empty without HTTPS, which it needs."""
    url = urljoin(redirect_uri, reverse("runs:mcp_client"))
    return url if url.startswith("https://") else ""


def client_of(server: McpServer, redirect_uri: str) -> Mapping[str, Any]:
    """Return as which client a new sign-in is made: as entered, or as registered before.

    Raises UnreadableSecret.
    """
    registered: Mapping[str, Any] = server.oauth_client.reveal()
    entered = _entered_client(server)
    if not entered:
        return registered
    # The secret is only sent to the authorization server that it was used with first.
    issuer = {"issuer": registered.get("issuer")}
    return {**issuer, **entered, "redirect_uris": [redirect_uri]}


def _entered_client(server: McpServer) -> dict[str, Any]:
    """Return the client that an administrator entered; empty if there is none."""
    if not server.oauth_client_id:
        return {}
    client = {"client_id": server.oauth_client_id}
    if secret := server.oauth_client_secret.reveal():
        return {**client, "client_secret": secret}
    return {**client, "token_endpoint_auth_method": "none"}


def find(server: McpServer, user_id: int | None) -> SavedSignIn | None:
    """Return a user's sign-in, or without a user everyone's; None if there is none."""
    row = _rows(server.pk, user_id, server.url).first()
    if row is None:
        return None
    try:
        redirect_uris = row.client.reveal().get("redirect_uris", [])
    except UnreadableSecret:
        return None
    return SavedSignIn(
        server=server.pk,
        name=server.name,
        user=user_id,
        url=server.url,
        redirect_uri=next(iter(redirect_uris), server.url),
        signed_in_at=row.signed_in_at.isoformat(),
    )


def save_client(server: McpServer, client: Mapping[str, Any]) -> None:
    """Save as which client this product is known there, for the next sign-ins.

    Unless another URL or client was entered meanwhile.
    """
    rows = McpServer.objects.filter(pk=server.pk, url=server.url)
    rows.filter(oauth_client_id=server.oauth_client_id).update(oauth_client=dict(client))


def save_sign_in(server: int, user: int | None, url: str, credentials: Credentials) -> None:
    """Save a new sign-in instead of the one before."""
    values = {**_columns(credentials), "url": url, "signed_in_at": timezone.now()}
    McpSignIn.objects.filter(Q(user_id=user)).update_or_create(
        server_id=server, defaults=values, create_defaults={**values, "user_id": user}
    )


def servers_to_sign_in(user: User) -> list[tuple[McpServer, datetime | None]]:
    """Return the servers where each user signs in, with when this user did."""
    servers = McpServer.objects.filter(sign_in=McpServer.SignIn.USER, enabled=True)
    rows = McpSignIn.objects.filter(user=user, url=F("server__url"))
    times = dict(rows.values_list("server", "signed_in_at"))
    return [(server, times.get(server.pk)) for server in servers]


def shared_since(server: McpServer) -> datetime | None:
    """Return when someone signed in for everyone; None if that is missing."""
    row = _rows(server.pk, None, server.url).first()
    return row.signed_in_at if row else None


def _rows(server: int, user: int | None, url: str) -> QuerySet[McpSignIn]:
    return McpSignIn.objects.filter(Q(user_id=user), server_id=server, url=url)


def _load(server: int, user: int | None, url: str) -> Credentials:
    row = _rows(server, user, url).select_related("server").first()
    return credentials_of(row) if row else Credentials()


def credentials_of(row: McpSignIn) -> Credentials:
    try:
        client = row.client.reveal()
        is_same = client.get("client_id") == row.server.oauth_client_id
        if is_same and row.url == row.server.url:
            client |= _entered_client(row.server)  # its secret may be a new one
        return Credentials(
            tokens=row.tokens.reveal(),
            client=client,
            metadata=row.metadata,
            expires_at=row.expires_at,
        )
    except UnreadableSecret:
        return Credentials()


def _refresh(server: int, user: int | None, url: str, credentials: Credentials) -> None:
    """Save refreshed tokens, unless the user has signed out meanwhile."""
    _rows(server, user, url).update(**_columns(credentials))


def _forget_rejected(server: int, user: int | None, rejected: Mapping[str, Any]) -> None:
    """Delete a sign-in that its server no longer accepts, unless it was refreshed meanwhile."""
    row = McpSignIn.objects.filter(Q(user_id=user), server_id=server).first()
    if row is not None and credentials_of(row).tokens in ({}, rejected):
        row.delete()


def _columns(credentials: Credentials) -> dict[str, Any]:
    return {
        "tokens": dict(credentials.tokens),
        "client": dict(credentials.client),
        "metadata": dict(credentials.metadata),
        "expires_at": credentials.expires_at,
    }
