"""What can go wrong with an OpenID Connect provider, and what the user is told about it.

An error's own text is for the log: it names the cause with its values, never a secret.
"""

from django.utils.translation import gettext_lazy as _

from agents.engine.privacy import mask_secrets
from agents.models.types import LazyText

MAX_DETAIL_CHARS = 200


class ProtocolError(Exception):
    """Raised when a sign-in with the provider fails; the text is for the log."""

    message: LazyText = _("%(service)s didn't complete the sign-in. Try again.")


class ProviderUnavailable(ProtocolError):
    """Raised when the provider can't be reached or its response can't be read."""

    message = _("%(service)s isn't responding. Try again later.")


class ProviderMisconfigured(ProtocolError):
    """Raised when the discovery document lacks something that sign-in needs."""

    message = _("%(service)s isn't configured correctly. Ask an administrator for help.")


class DiscoveryNotFound(ProviderMisconfigured):
    """Raised when the issuer URL has no discovery document."""

    message = _(
        "%(service)s couldn't be found at its configured URL. Ask an administrator to check "
        "ASHIATO_OIDC_ISSUER."
    )


class IssuerMismatch(ProviderMisconfigured):
    """Raised when the provider names another issuer than the configured one."""

    message = _(
        "%(service)s reports a different issuer than configured here. Ask an administrator to "
        "check ASHIATO_OIDC_ISSUER."
    )


class ClientRejected(ProtocolError):
    """Raised when the provider doesn't accept our client ID or secret."""

    message = _(
        "%(service)s rejected this server's client ID or secret. Ask an administrator to check "
        "ASHIATO_OIDC_CLIENT_ID and ASHIATO_OIDC_CLIENT_SECRET."
    )


class RedirectUriRejected(ProtocolError):
    """Raised when our redirect URI isn't registered."""

    message = _(
        "%(service)s doesn't know this server's redirect URI. Ask an administrator to register "
        "%(redirect_uri)s there."
    )


class ScopeRejected(ProtocolError):
    """Raised when the provider doesn't support a requested scope."""

    message = _(
        "%(service)s rejected the requested scopes (%(scopes)s). Ask an administrator to "
        "check ASHIATO_OIDC_SCOPES."
    )


class AccessDenied(ProtocolError):
    """Raised when the user or the provider refused."""

    message = _(
        "Not signed in: you canceled at %(service)s, or your account there has no access "
        "to this app."
    )


class CodeRejected(ProtocolError):
    """Raised when the code was used before or has expired."""

    message = _("This sign-in was already used or has expired. Sign in again.")


class TokenRejected(ProtocolError):
    """Raised when a token or UserInfo response fails a check."""

    message = _("The response from %(service)s couldn't be verified.")


class UserInfoRefused(TokenRejected):
    """Raised when UserInfo doesn't accept the access token."""

    message = _(
        "%(service)s didn't share your profile. Ask an administrator to check "
        "ASHIATO_OIDC_SCOPES."
    )


class NonceMismatch(TokenRejected):
    """Raised when an ID token answers another sign-in."""

    message = _("The response from %(service)s belongs to a different sign-in. Try again.")


class ClockSkew(TokenRejected):
    """Raised when a fresh token is expired or not valid yet."""

    message = _(
        "The clocks of this server and %(service)s differ too much. Ask an administrator to "
        "check the time on both."
    )


class AlgorithmRejected(TokenRejected):
    """Raised when a token is signed with an algorithm that isn't accepted."""

    message = _(
        "%(service)s signs its tokens with an algorithm that isn't accepted here. Ask an "
        "administrator to choose RS256, PS256, ES256 or EdDSA there."
    )


ERRORS_BY_CODE: dict[str, type[ProtocolError]] = {
    "access_denied": AccessDenied,
    "consent_required": AccessDenied,
    "invalid_client": ClientRejected,
    "unauthorized_client": ClientRejected,
    "invalid_grant": CodeRejected,
    "invalid_scope": ScopeRejected,
    "redirect_uri_mismatch": RedirectUriRejected,
    "server_error": ProviderUnavailable,
    "temporarily_unavailable": ProviderUnavailable,
}


def from_code(code: str, description: str) -> ProtocolError:
    """Return the error for the provider's error code, from either endpoint."""
    kind = ERRORS_BY_CODE.get(code, ProtocolError)
    if code in {"invalid_request", "invalid_grant"} and "redirect" in description.lower():
        kind = RedirectUriRejected
    return kind(quoted(f"{code}: {description}" if description else code))


def quoted(text: str) -> str:
    """Return text of the provider for one log line: short, printable, without secrets."""
    plain = "".join(char if char.isprintable() else " " for char in text)
    return mask_secrets(plain[:MAX_DETAIL_CHARS])
