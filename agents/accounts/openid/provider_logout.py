"""Sign-out at the identity provider (OpenID Connect RP-Initiated Logout).

What it needs is saved in the session, the ID token encrypted, so that signing out needs no
request to the provider.
"""

import hmac
import secrets
from dataclasses import dataclass, field
from typing import Any, Self

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import urlencode

from agents.models.secret import EncryptedValue, UnreadableSecret, encrypt

from . import oidc_cookies

SESSION_KEY = "provider_session"
COOKIE_NAME = "oidc_logout"
SALT = "agents.accounts.openid.provider_logout"
COOKIE_SECONDS = 600
# Servers commonly refuse URLs over 8 KB; the client ID then has to be enough.
MAX_ID_TOKEN_CHARS = 6_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSession:
    """A user's session at the provider."""

    issuer: str
    end_session_endpoint: str  # empty if the provider has none
    id_token: str = field(repr=False)

    def dump(self) -> dict[str, str]:
        """Return the value for our session."""
        is_short = len(self.id_token) <= MAX_ID_TOKEN_CHARS
        return {
            "issuer": self.issuer,
            "end_session_endpoint": self.end_session_endpoint,
            "id_token": encrypt(self.id_token if is_short else "").token,
        }

    @classmethod
    def load(cls, request: HttpRequest) -> Self | None:
        """Return the one of this session, if it was started at the configured provider."""
        saved: Any = request.session.get(SESSION_KEY)
        if not saved or saved["issuer"] != settings.ENVIRONMENT.oidc_issuer:
            return None
        try:
            id_token = EncryptedValue(saved["id_token"]).reveal()
        except UnreadableSecret:
            id_token = ""  # the keys were changed; the provider asks the user instead
        return cls(
            issuer=saved["issuer"],
            end_session_endpoint=saved["end_session_endpoint"],
            id_token=id_token,
        )


def end_session_url(request: HttpRequest, session: ProviderSession, state: str) -> str:
    """Return the provider's URL that ends the user's session there and leads back here."""
    parameters = {
        "client_id": settings.ENVIRONMENT.oidc_client_id,
        "post_logout_redirect_uri": request.build_absolute_uri(
            reverse("people:oidc_signed_out")
        ),
        "state": state,
        "ui_locales": getattr(request, "LANGUAGE_CODE", "") or settings.LANGUAGE_CODE,
    }
    if session.id_token:
        parameters["id_token_hint"] = session.id_token
    endpoint = session.end_session_endpoint
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(parameters)}"


def new_state() -> str:
    return secrets.token_urlsafe(32)


def set_state_cookie(response: HttpResponse, state: str) -> None:
    signed = signing.dumps(state, salt=SALT)
    oidc_cookies.set_cookie(response, COOKIE_NAME, signed, COOKIE_SECONDS)


def is_expected_return(request: HttpRequest) -> bool:
    """Whether the provider sends the browser back from a sign-out that started here."""
    try:
        state = signing.loads(
            request.COOKIES.get(COOKIE_NAME, ""), salt=SALT, max_age=COOKIE_SECONDS
        )
    except signing.BadSignature:
        return False
    return hmac.compare_digest(state.encode(), request.GET.get("state", "").encode())
