"""Apps: what they say about themselves, and where they may send users back to."""

import re
from collections.abc import Iterable
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, BaseModel, Field, field_validator, model_validator

from agents.access import api_keys
from agents.db.sanitize import visible_name
from agents.models import ApiKey, OAuthApp

CODE_GRANT = "authorization_code"
REFRESH_GRANT = "refresh_token"
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
GRANT_TYPES = (CODE_GRANT, REFRESH_GRANT, DEVICE_GRANT)
AUTH_METHODS = ("none", "client_secret_basic", "client_secret_post")
# What an app gets that names no scopes.
DEFAULT_SCOPES = (ApiKey.Scope.ASK, ApiKey.Scope.READ)

# The command line, which works without being registered.
CLI_CLIENT_ID = "ashiato-cli"
CLI_NAME = "Ashiato command line"

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})
# Browsers run or open these themselves, so no app can own them.
BROWSER_SCHEMES = frozenset(
    {
        *("about", "blob", "data", "file", "filesystem", "ftp", "javascript", "vbscript"),
        *("view-source", "ws", "wss"),
    }
)
URI_PATTERN = re.compile(r"[!#-\[\]-~]{1,2000}")
SCHEME_PATTERN = re.compile(r"[a-z][a-z0-9+.-]*")
MAX_NAME_CHARS = 80


def split_redirect_uri(uri: str) -> SplitResult:
    """Return the parts of a redirect URI: https, http on this device, or an app's own scheme.

    Raises ValueError.
    """
    if not URI_PATTERN.fullmatch(uri) or "#" in uri:
        raise ValueError("A redirect URI is an absolute URI without a fragment.")
    parts = urlsplit(uri)
    if parts.username is not None or parts.port == 0:
        raise ValueError("A redirect URI has no user name, and a valid port.")
    if parts.scheme == "https":
        is_allowed = bool(parts.hostname)
    elif parts.scheme == "http":
        is_allowed = parts.hostname in LOOPBACK_HOSTS
    else:
        is_own = SCHEME_PATTERN.fullmatch(parts.scheme) is not None
        is_allowed = is_own and parts.scheme not in BROWSER_SCHEMES
    if not is_allowed:
        raise ValueError(
            "A redirect URI begins with https://, with http:// and a loopback host, "
            "or with a scheme of the app."
        )
    return parts


def _check_redirect_uri(uri: str) -> str:
    split_redirect_uri(uri)
    return uri


def is_registered(uri: str, registered: Iterable[str]) -> bool:
    """Whether an app registered this redirect URI; on this device, any port will do."""
    try:
        parts = split_redirect_uri(uri)
    except ValueError:
        return False
    if uri in registered:
        return True
    if parts.scheme != "http":
        return False
    return any(_without_port(parts) == _without_port(urlsplit(other)) for other in registered)


def _without_port(parts: SplitResult) -> tuple[str, str | None, str, str]:
    return parts.scheme, parts.hostname, parts.path, parts.query


class AppMetadata(BaseModel):
    """What an app says about itself: RFC 7591, and client ID metadata documents."""

    redirect_uris: list[Annotated[str, AfterValidator(_check_redirect_uri)]] = Field(
        default_factory=list, max_length=20
    )
    client_name: str = Field(default="", max_length=1_000)
    client_uri: str = Field(default="", max_length=500)
    grant_types: list[str] = Field(default=[CODE_GRANT], max_length=20)
    response_types: list[str] = Field(default=["code"], max_length=20)
    token_endpoint_auth_method: str = "client_secret_basic"
    scope: str = Field(default="", max_length=1_000)

    @field_validator("grant_types")
    @classmethod
    def _keep_known_grants(cls, values: list[str]) -> list[str]:
        return [value for value in GRANT_TYPES if value in values]

    @field_validator("response_types")
    @classmethod
    def _keep_code(cls, values: list[str]) -> list[str]:
        return [value for value in values if value == "code"]

    @field_validator("scope")
    @classmethod
    def _keep_known_scopes(cls, value: str) -> str:
        return " ".join(scope for scope in value.split() if scope in ApiKey.Scope)

    @field_validator("client_uri")
    @classmethod
    def _keep_web_page(cls, value: str) -> str:
        is_page = value.startswith("https://") and URI_PATTERN.fullmatch(value)
        return value if is_page else ""

    @field_validator("token_endpoint_auth_method")
    @classmethod
    def _check_method(cls, value: str) -> str:
        if value not in AUTH_METHODS:
            raise ValueError(f"It is one of {', '.join(AUTH_METHODS)}.")
        return value

    @model_validator(mode="after")
    def _check_grants(self) -> "AppMetadata":
        if not {CODE_GRANT, DEVICE_GRANT} & {*self.grant_types}:
            raise ValueError(f"grant_types needs {CODE_GRANT} or {DEVICE_GRANT}.")
        if CODE_GRANT in self.grant_types and not self.redirect_uris:
            raise ValueError("redirect_uris is missing.")
        return self

    @property
    def name(self) -> str:
        return visible_name(self.client_name)[:MAX_NAME_CHARS].strip()


def find(client_id: str) -> OAuthApp | None:
    """Return an app that isn't blocked."""
    app = OAuthApp.objects.filter(client_id=client_id).first()
    if app is None and client_id == CLI_CLIENT_ID:
        app, _is_new = OAuthApp.objects.get_or_create(
            client_id=CLI_CLIENT_ID,
            defaults={
                "name": CLI_NAME,
                "source": OAuthApp.Source.BUILT_IN,
                "grant_types": [DEVICE_GRANT, REFRESH_GRANT],
            },
        )
    return app if app is not None and app.blocked_at is None else None


def register(client_id: str, secret: str, metadata: AppMetadata) -> OAuthApp:
    """Save an app that registers itself."""
    return OAuthApp.objects.create(
        client_id=client_id,
        secret_digest=api_keys.digest_of(secret) if secret else "",
        auth_method=metadata.token_endpoint_auth_method,
        source=OAuthApp.Source.REGISTERED,
        **described_columns(metadata),
    )


def described_columns(metadata: AppMetadata) -> dict[str, object]:
    """Return the columns in which an app describes itself."""
    host = urlsplit(next(iter(metadata.redirect_uris), "")).hostname
    return {
        "name": metadata.name or host or "App",
        "homepage": metadata.client_uri,
        "redirect_uris": metadata.redirect_uris,
        "grant_types": metadata.grant_types,
    }
