"""What apps find out about the server: RFC 8414 and RFC 9728."""

from typing import Any
from urllib.parse import urlsplit

from authlib.oauth2 import OAuth2Error
from django.conf import settings
from django.urls import reverse

from agents.db.installation import configured
from agents.models import ApiKey
from agents.web import branding
from agents.web.api_errors import MCP_PATH

from .apps import AUTH_METHODS, GRANT_TYPES

# What an MCP client asks for if it isn't told otherwise.
MCP_SCOPES = [ApiKey.Scope.ASK, ApiKey.Scope.READ, ApiKey.Scope.APPROVE]


class InvalidTarget(OAuth2Error):
    """Raised if an app wants a token for another server (RFC 8707)."""

    error = "invalid_target"
    description = "The resource is not part of this server."


def authorization_server(origin: str) -> dict[str, Any]:
    """Return the metadata of the authorization server at this origin."""

    def url(name: str) -> str:
        return f"{origin}{reverse(f'people:{name}')}"

    metadata: dict[str, Any] = {
        "issuer": origin,
        "authorization_endpoint": url("oauth_authorize"),
        "token_endpoint": url("oauth_token"),
        "revocation_endpoint": url("oauth_revoke"),
        "device_authorization_endpoint": url("oauth_device_authorization"),
        "scopes_supported": list(ApiKey.Scope.values),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": list(GRANT_TYPES),
        "token_endpoint_auth_methods_supported": list(AUTH_METHODS),
        "revocation_endpoint_auth_methods_supported": list(AUTH_METHODS),
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": configured.APP_REGISTRATION.value,
        "ui_locales_supported": [code for code, _name in settings.LANGUAGES],
    }
    if configured.APP_REGISTRATION.value:
        metadata["registration_endpoint"] = url("oauth_register")
    return metadata


def protected_resource(origin: str, path: str = "") -> dict[str, Any]:
    """Return the metadata of the API, or of the MCP server."""
    return {
        "resource": f"{origin}{path}",
        "resource_name": branding.current().name,
        "authorization_servers": [origin],
        "scopes_supported": MCP_SCOPES if path == MCP_PATH else list(ApiKey.Scope.values),
        "bearer_methods_supported": ["header"],
    }


def check_resources(resources: list[str]) -> None:
    """Check that a token is wanted for this installation; raise InvalidTarget.

    A token works at each of its addresses: what it may do is limited by its scopes.
    """
    for resource in resources:
        parts = urlsplit(resource)
        origin = f"{parts.scheme}://{parts.netloc}".lower()
        if origin not in settings.ORIGINS or parts.fragment:
            raise InvalidTarget
