"""Published clients: Authlib's in this process, and the MCP SDK's against a running server."""

import httpx2
import pytest
from authlib.integrations.httpx_client import OAuth2Client
from django.test import Client
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthClientMetadata

from agents.access import api_keys
from tests.browser.server import Server
from tests.conftest import as_user

from .browser import Browser, Storage
from .conftest import REDIRECT_URI, SECRET, make_app

SERVER = "http://testserver"
LOOPBACK_URI = "http://127.0.0.1:43123/callback"


def ask_django(request: httpx2.Request) -> httpx2.Response:
    """Answer a request of another program."""
    headers = {name: value for name, value in request.headers.items() if name != "host"}
    answer = Client().generic(
        request.method,
        str(request.url.raw_path, "ascii"),
        request.read(),
        headers.pop("content-type", ""),
        headers=headers,
    )
    return httpx2.Response(
        answer.status_code, headers=dict(answer.items()), content=answer.content
    )


@pytest.mark.django_db
@pytest.mark.parametrize("secret", ["", SECRET], ids=["public", "secret"])
def test_authlib_signs_in_refreshes_and_signs_out(person, secret):
    app = make_app("app_authlib", secret)
    client = OAuth2Client(
        app.client_id,
        secret or None,
        scope="ask read",
        redirect_uri=REDIRECT_URI,
        token_endpoint_auth_method=app.auth_method,
        code_challenge_method="S256",
        transport=httpx2.MockTransport(ask_django),
    )
    metadata = Client().get("/.well-known/oauth-authorization-server").json()
    url, state = client.create_authorization_url(
        metadata["authorization_endpoint"], code_verifier="v" * 43
    )
    back = as_user(person).post(url.removeprefix(SERVER), {"decision": "allow"}).context["url"]

    token = client.fetch_token(
        metadata["token_endpoint"],
        authorization_response=back,
        state=state,
        code_verifier="v" * 43,
    )
    assert api_keys.find(f"Bearer {token['access_token']}").user == person
    renewed = client.refresh_token(metadata["token_endpoint"], token["refresh_token"])
    assert api_keys.find(f"Bearer {renewed['access_token']}").user == person
    client.revoke_token(metadata["revocation_endpoint"], renewed["refresh_token"])
    assert api_keys.find(f"Bearer {renewed['access_token']}") is None


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("server"), delay=0)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def browser(server):
    browser = Browser(server.url)
    yield browser
    browser.http.close()


@pytest.mark.thorough
@pytest.mark.parametrize("path", ["/mcp", "/api/v1/agents"])
async def test_the_mcp_sdk_finds_registers_and_signs_in_by_itself(server, path, browser):
    storage = Storage()
    provider = OAuthClientProvider(
        f"{server.url}{path}",
        OAuthClientMetadata(
            client_name="SDK",
            redirect_uris=[LOOPBACK_URI],
            grant_types=["authorization_code", "refresh_token"],
            token_endpoint_auth_method="none",
        ),
        storage,
        browser.open,
        browser.result,
    )
    async with httpx2.AsyncClient(auth=provider, timeout=30) as client:
        response = await client.get(f"{server.url}{path}")
        first = storage.tokens
        provider.context.token_expiry_time = 1.0
        refreshed = await client.get(f"{server.url}{path}")

    assert response.status_code != 401
    assert refreshed.status_code != 401
    assert storage.info.client_id.startswith("app_")
    assert storage.tokens.access_token != first.access_token
    old = httpx2.get(
        f"{server.url}{path}", headers={"Authorization": f"Bearer {first.access_token}"}
    )
    assert old.status_code == 401
