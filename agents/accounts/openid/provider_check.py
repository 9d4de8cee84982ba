"""Checks the identity provider, so that an administrator sees a wrong setup before users do.

Besides reading its documents, this asks for a token with an invalid code, which shows whether
the client is known, and for a sign-in without a user, which shows whether our redirect URI is.
"""

import secrets
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from functools import lru_cache
from urllib.parse import parse_qs, urlsplit

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.console.system import health_checks
from agents.models.types import LazyText

from . import oidc, oidc_client, oidc_errors
from .oidc_client import Client
from .oidc_errors import ProtocolError

CACHE_SECONDS = 300
PROBLEMS_OF_REDIRECTS = (oidc_errors.ClientRejected, oidc_errors.ScopeRejected)
ADVICE: dict[type[ProtocolError], LazyText] = {
    ProtocolError: gettext_lazy("Check the client's settings at the provider."),
    oidc_errors.ProviderUnavailable: gettext_lazy(
        "Check ASHIATO_OIDC_ISSUER, the network and the provider's status."
    ),
    oidc_errors.ProviderMisconfigured: gettext_lazy("Check the provider's discovery document."),
    oidc_errors.DiscoveryNotFound: gettext_lazy(
        "Set ASHIATO_OIDC_ISSUER to the provider's issuer URL."
    ),
    oidc_errors.IssuerMismatch: gettext_lazy(
        "Set ASHIATO_OIDC_ISSUER exactly as the provider spells it."
    ),
    oidc_errors.ClientRejected: gettext_lazy(
        "Check ASHIATO_OIDC_CLIENT_ID and ASHIATO_OIDC_CLIENT_SECRET."
    ),
    oidc_errors.RedirectUriRejected: gettext_lazy(
        "Check ASHIATO_OIDC_CLIENT_ID, and register the redirect URI %(redirect_uri)s."
    ),
    oidc_errors.ScopeRejected: gettext_lazy("Check ASHIATO_OIDC_SCOPES."),
    oidc_errors.TokenRejected: gettext_lazy("Check the provider's signing keys."),
    oidc_errors.ClockSkew: gettext_lazy("Synchronize the clocks, for example with NTP."),
    oidc_errors.AlgorithmRejected: gettext_lazy(
        "Choose RS256, PS256, ES256 or EdDSA for ID tokens at the provider."
    ),
}


def redirect_uri() -> str:
    """Return the redirect URI at the first configured origin."""
    return f"{settings.ORIGINS[0]}{reverse('people:oidc_back')}"


def health_check() -> Iterator[health_checks.HealthCheck]:
    """Yield the line of the health page; a good result is valid for some minutes."""
    name = _("Single sign-on")
    service = {"service": oidc.provider_name()}
    client = oidc.configured_client(redirect_uri())
    try:
        _check_cached(client, int(time.time() // CACHE_SECONDS))
    except ProtocolError as error:
        status = _("Sign-in with %(service)s fails: %(cause)s") % {**service, "cause": error}
        advice = advice_for(error, client)
        yield health_checks.HealthCheck(name=name, status=status, advice=advice)
    else:
        status = _("%(service)s accepts this server.") % service
        yield health_checks.HealthCheck(name=name, status=status)


@lru_cache(maxsize=1)
def _check_cached(client: Client, _period: int) -> None:
    check(client)


def advice_for(error: ProtocolError, client: Client) -> str:
    kind = next(kind for kind in type(error).__mro__ if kind in ADVICE)
    return str(ADVICE[kind]) % {"redirect_uri": client.redirect_uri}


def check(client: Client) -> None:
    """Raise the first problem that would keep users from signing in."""
    oidc_client.document.cache_clear()
    _check_discovery(client)
    _check_clock(client)
    _check_client(client)
    _check_redirect_uri(client)


def _check_discovery(client: Client) -> None:
    document = client.discovery()
    for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
        client.endpoint(name)
    algorithms = document.get("id_token_signing_alg_values_supported")
    if isinstance(algorithms, list) and not set(oidc_client.ALGORITHMS) & set(algorithms):
        names = oidc_errors.quoted(", ".join(map(str, algorithms)))
        raise oidc_errors.AlgorithmRejected(f"ID tokens are signed with {names}.")
    client.keys()
    scopes = document.get("scopes_supported")
    unknown = set(client.scopes).difference(
        scopes if isinstance(scopes, list) else client.scopes
    )
    if unknown:
        names = ", ".join(sorted(unknown))
        raise oidc_errors.ScopeRejected(f"The provider doesn't list these scopes: {names}.")


def _check_clock(client: Client) -> None:
    try:
        date_header = oidc_client.peek(client.discovery_url).headers["date"]
        offset = time.time() - parsedate_to_datetime(date_header).timestamp()
    except (KeyError, ValueError):
        return
    if abs(offset) > oidc_client.LEEWAY_SECONDS:
        side = "ahead of" if offset > 0 else "behind"
        raise oidc_errors.ClockSkew(
            f"This server's clock is {abs(offset):.0f} s {side} the provider's."
        )


def _check_client(client: Client) -> None:
    """Use an invalid code; a provider that complains about it has accepted the client."""
    try:
        client.exchange("check", secrets.token_urlsafe(32))
    except (oidc_errors.ClientRejected, oidc_errors.ProviderUnavailable):
        raise
    except ProtocolError:
        return


def _check_redirect_uri(client: Client) -> None:
    """Ask for a sign-in without a page; only an unknown client or URI gets an error page."""
    state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
    url = client.authorization_url(state=state, nonce=nonce, verifier=verifier, prompt="none")
    response = oidc_client.peek(url)
    if response.is_client_error and response.status_code not in oidc_client.BUSY_STATUSES:
        raise oidc_errors.RedirectUriRejected(
            f"The authorization endpoint answered with status {response.status_code}."
        )
    parameters = parse_qs(urlsplit(response.headers.get("location", "")).query)
    code, description = (
        parameters.get(name, [""])[0] for name in ("error", "error_description")
    )
    error = oidc_errors.from_code(code, description)
    if isinstance(error, PROBLEMS_OF_REDIRECTS):
        raise error
