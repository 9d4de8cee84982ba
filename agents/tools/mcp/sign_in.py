"""What a connection needs to know of an OAuth sign-in, wherever it is saved.

The MCP SDK does the protocol (`connection.oauth`). Importing it takes long, so there are only
plain values here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from agents.engine.sentences import Sentence as _

from .errors import ServerUnavailable


class SignInRequired(ServerUnavailable):
    """Raised when a server's tools need a sign-in that isn't there, or has ended."""

    message = _("Sign in to this server to use its tools.")

    def __init__(self, name: str = "", *, is_shared: bool = False) -> None:
        own = _(
            "You aren’t signed in to %(name)s. Sign in on your account page, then try again.",
            name=name,
        )
        shared = _(
            "Nobody is signed in to %(name)s. Ask an administrator to sign in.", name=name
        )
        super().__init__(shared if is_shared else own)


class SignInFailed(ServerUnavailable):
    message = _("The sign-in wasn't completed.")


OTHER_AUTHORIZATION_SERVER = _(
    "This server now uses another authorization server than the client ID is for. If that is "
    "right, enter the client ID of the new one in its settings, under “OAuth client”."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What is saved of a sign-in, as the SDK's models in JSON; empty if there is nothing."""

    tokens: Mapping[str, Any] = field(default_factory=dict, repr=False)
    client: Mapping[str, Any] = field(default_factory=dict, repr=False)
    metadata: Mapping[str, Any] = field(default_factory=dict)  # of the authorization server
    expires_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationResponse:
    """What the authorization server sent back with the user."""

    code: str
    state: str = ""
    issuer: str | None = None


class SignIn(Protocol):
    """One sign-in to one server. Equal ones are the same, so a connection can be shared."""

    @property
    def redirect_uri(self) -> str:
        """Where the authorization server sends the user back to."""
        ...

    @property
    def metadata_url(self) -> str:
        """Where our client metadata document is; empty if it can't be read from outside."""
        ...

    async def load(self) -> Credentials: ...

    async def save_client(self, client: Mapping[str, Any]) -> None:
        """Save how the server knows this product."""
        ...

    async def save_tokens(self, credentials: Credentials) -> None: ...

    async def authorize(self, url: str, rejected: Mapping[str, Any]) -> None:
        """Have the user sign in on this page, because these tokens were rejected.

        Raises SignInRequired if nobody is there.
        """
        ...

    async def response(self) -> AuthorizationResponse:
        """Wait until the user comes back; raise SignInFailed."""
        ...
