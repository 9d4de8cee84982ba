"""Signs requests to an MCP server, with the SDK's OAuth provider.

It discovers the authorization server, does the authorization code flow with PKCE and refreshes
tokens. This product is known there by the client ID that was entered, by the URL of its client
metadata document, or by registration, whichever comes first. Requests are sent by the
connection's own HTTP client, so they obey the egress policy. Only `client` imports this.
"""

import logging
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from agents.engine.sentences import Sentence as _
from agents.tools import egress

from ..configuration.config import MIN_SECRET_CHARS
from ..errors import ServerUnavailable
from ..sign_in import OTHER_AUTHORIZATION_SERVER, Credentials, SignIn

# It logs each sign-in that is needed as an error; the connection's own error says what to do.
logging.getLogger("mcp.client.auth.oauth2").setLevel(logging.CRITICAL)
CLIENT_NAME = "Ashiato"
MARGIN_SECONDS = 10  # a token is refreshed before a call on its way outlives it
MAX_REASON_CHARS = 300
JSON_TYPE = "application/json"  # some return a form unless they are asked for it
FLOW_ERRORS = (OAuthFlowError,)  # of registration and tokens, too
RegistrationError = OAuthRegistrationError


class SignInProvider(OAuthClientProvider):
    """The SDK's provider over a saved sign-in, which other processes may refresh meanwhile."""

    def __init__(self, url: str, sign_in: SignIn) -> None:
        metadata = OAuthClientMetadata(
            client_name=CLIENT_NAME,
            redirect_uris=[AnyUrl(sign_in.redirect_uri)],
            grant_types=["authorization_code", "refresh_token"],
            application_type="web",
        )
        self._storage = _Storage(self, sign_in)
        super().__init__(
            url,
            metadata,
            self._storage,
            redirect_handler=self._redirect,
            callback_handler=self._callback,
            client_metadata_url=sign_in.metadata_url or None,
        )
        self._sign_in = sign_in

    @property
    def secrets(self) -> set[str]:
        """What must not be repeated of what was sent so far; it grows."""
        return self._storage.secrets

    def explain_registration(self, error: OAuthRegistrationError) -> str:
        """Return why this product has no client ID there, and what to do."""
        if self._storage.client:
            return OTHER_AUTHORIZATION_SERVER  # to which the SDK doesn't present our client
        metadata = self.context.oauth_metadata
        if metadata is None or metadata.registration_endpoint is None:
            return _(
                "This server doesn’t register clients by itself. Enter a client ID in its "
                "settings, under “OAuth client”."
            )
        return _(
            "The server refused to register this installation (%(reason)s). Enter a client ID "
            "in its settings, under “OAuth client”.",
            reason=str(error)[:MAX_REASON_CHARS],
        )

    def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        if not self.context.is_token_valid():
            self._initialized = False  # what another process has refreshed is loaded
        return super().async_auth_flow(request)

    async def _initialize(self) -> None:
        """Load what is saved. The SDK forgets when a token expires, and where to refresh it."""
        await super()._initialize()
        credentials = self._storage.credentials
        self.context.token_expiry_time = credentials.expires_at
        if credentials.metadata:
            self.context.oauth_metadata = OAuthMetadata.model_validate(credentials.metadata)

    async def _handle_refresh_response(self, response: httpx2.Response) -> bool:
        """Keep the tokens while the authorization server is down, for the next attempt."""
        status = response.status_code
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
            raise ServerUnavailable(
                _("The sign-in couldn’t be renewed (HTTP %(status)s).", status=status)
            )
        return await super()._handle_refresh_response(response)

    async def _exchange_token_authorization_code(
        self, auth_code: str, code_verifier: str
    ) -> httpx2.Request:
        self._choose_authentication()
        request = await super()._exchange_token_authorization_code(auth_code, code_verifier)
        request.headers["Accept"] = JSON_TYPE
        return request

    async def _refresh_token(self) -> httpx2.Request:
        request = await super()._refresh_token()
        request.headers["Accept"] = JSON_TYPE
        return request

    def _choose_authentication(self) -> None:
        """Choose how the client's secret is sent, if that isn't known yet."""
        client = self.context.client_info
        if not client or not client.client_secret or client.token_endpoint_auth_method:
            return
        metadata = self.context.oauth_metadata
        methods = (metadata and metadata.token_endpoint_auth_methods_supported) or ()
        is_in_body = "client_secret_post" in methods and "client_secret_basic" not in methods
        client.token_endpoint_auth_method = (
            "client_secret_post" if is_in_body else "client_secret_basic"
        )
        self._storage.keep_client(client)

    async def _redirect(self, url: str) -> None:
        await self._sign_in.authorize(url, self._storage.credentials.tokens)

    async def _callback(self) -> AuthorizationCodeResult:
        response = await self._sign_in.response()
        return AuthorizationCodeResult(
            code=response.code, state=response.state, iss=response.issuer
        )

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The authorization server's metadata, as far as it was discovered."""
        found = self.context.oauth_metadata
        return found.model_dump(mode="json", exclude_none=True) if found else {}


class _Storage:
    """The SDK's token storage."""

    def __init__(self, provider: SignInProvider, sign_in: SignIn) -> None:
        self.credentials = Credentials()
        self.secrets: set[str] = set()
        self._provider = provider
        self._sign_in = sign_in

    def keep_client(self, client_info: OAuthClientInformationFull) -> Mapping[str, Any]:
        client = client_info.model_dump(mode="json", exclude_none=True)
        self._keep(replace(self.credentials, client=client))
        return client

    def _keep(self, credentials: Credentials) -> None:
        self.credentials = credentials
        tokens = credentials.tokens
        values = [tokens.get("access_token"), tokens.get("refresh_token")]
        values.append(credentials.client.get("client_secret"))
        self.secrets.update(text for text in values if text and len(text) >= MIN_SECRET_CHARS)

    async def get_tokens(self) -> OAuthToken | None:
        self._keep(await self._sign_in.load())
        tokens = self.credentials.tokens
        return OAuthToken.model_validate(tokens) if tokens else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        expires_at = None
        if tokens.expires_in is not None:
            margin = min(MARGIN_SECONDS, tokens.expires_in / 2)
            expires_at = time.time() + tokens.expires_in - margin
        self._provider.context.token_expiry_time = expires_at
        self._keep(
            replace(
                self.credentials,
                tokens=tokens.model_dump(mode="json", exclude_none=True),
                metadata=self._provider.metadata,
                expires_at=expires_at,
            )
        )
        await self._sign_in.save_tokens(self.credentials)

    @property
    def client(self) -> Mapping[str, Any]:
        """As which client we are known; none if the product has another address now."""
        client = self.credentials.client
        return client if self._sign_in.redirect_uri in client.get("redirect_uris", ()) else {}

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return OAuthClientInformationFull.model_validate(self.client) if self.client else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        await self._sign_in.save_client(self.keep_client(client_info))


async def revoke(url: str, credentials: Credentials, policy: egress.Egress) -> None:
    """Tell the authorization server that the tokens aren't used any more, if it wants to know.

    Raises EgressRefused or EgressFailed.
    """
    endpoint = credentials.metadata.get("revocation_endpoint")
    token = credentials.tokens.get("refresh_token") or credentials.tokens.get("access_token")
    if not endpoint or not token or not credentials.client:
        return
    client = OAuthClientInformationFull.model_validate(credentials.client)
    context = OAuthContext(url, OAuthClientMetadata(redirect_uris=None), None, None, None)  # type: ignore[arg-type]
    context.client_info = client
    data, headers = context.prepare_token_auth(
        {"token": token, "client_id": client.client_id or ""}, {}
    )
    headers["Content-Type"] = "application/x-www-form-urlencoded"
    content = urlencode(data).encode()
    await egress.fetch("POST", endpoint, policy=policy, headers=headers, content=content)
