"""An app, and its way through the flow with Django's test client."""

import secrets
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from django.test import Client

from agents.accounts.oauth_server import apps
from agents.models import OAuthApp
from tests.conftest import as_user

REDIRECT_URI = "https://notes.example/callback"
LOOPBACK_URI = "http://127.0.0.1/callback"
SECRET = "the-secret-of-the-app"
GRANT_TYPES = list(apps.GRANT_TYPES)


def make_app(client_id: str = "app_notes", secret: str = "", **values: Any) -> OAuthApp:
    described = {
        "client_name": "Notes",
        "redirect_uris": [REDIRECT_URI, LOOPBACK_URI],
        "grant_types": GRANT_TYPES,
        "token_endpoint_auth_method": "client_secret_basic" if secret else "none",
    }
    metadata = apps.AppMetadata.model_validate(described | values)
    return apps.register(client_id, secret, metadata)


@dataclass
class Flow:
    """One sign-in of an app; `parameters` replace those of a right request."""

    browser: Client
    client_id: str = "app_notes"
    redirect_uri: str = REDIRECT_URI
    scope: str = "ask read"
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))

    def parameters(self, **others: str | None) -> dict[str, str]:
        values = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "scope": self.scope,
            "state": "xyz",
            "code_challenge": create_s256_code_challenge(self.verifier),
            "code_challenge_method": "S256",
            **others,
        }
        return {name: value for name, value in values.items() if value is not None}

    def open(self, **others: str | None) -> Any:
        return self.browser.get("/oauth/authorize", self.parameters(**others))

    def decide(self, decision: str = "allow", **others: str | None) -> Any:
        return self.browser.post(
            "/oauth/authorize",
            {"decision": decision},
            query_params=self.parameters(**others),
        )

    def allow(self, **others: str | None) -> str:
        """Return the code with which the user is sent back."""
        return sent_back(self.decide(**others))["code"]

    def exchange(self, code: str, **others: str | None) -> Any:
        values = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.redirect_uri,
            "client_id": self.client_id,
            "code_verifier": self.verifier,
            **others,
        }
        return post("/oauth/token", **values)

    def tokens(self) -> dict[str, Any]:
        response = self.exchange(self.allow())
        assert response.status_code == 200, response.content
        return response.json()

    def refresh(self, token: str, **others: str | None) -> Any:
        values = {"grant_type": "refresh_token", "refresh_token": token}
        return post("/oauth/token", client_id=self.client_id, **values, **others)


def post(path: str, *, headers: dict[str, str] | None = None, **values: str | None) -> Any:
    """Post a form like a program, without cookies."""
    form = {name: value for name, value in values.items() if value is not None}
    return Client().post(
        path,
        urlencode(form),
        content_type="application/x-www-form-urlencoded",
        headers=headers,
    )


def sent_back(response: Any) -> dict[str, str]:
    """Return the parameters with which a page leads back to the app."""
    assert response.status_code == 200, response.context.get("problem")
    return dict(parse_qsl(urlsplit(response.context["url"]).query))


@pytest.fixture
def app(db):
    return make_app()


@pytest.fixture
def flow(app, person):
    return Flow(as_user(person))
