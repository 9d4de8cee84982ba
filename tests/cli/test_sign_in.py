"""Signing in to a server with a code in the browser, renewing the token, signing out."""

import asyncio

import httpx2
import pytest

from project.cli import profiles, sign_in
from project.cli.errors import CommandFailed, ServerError
from project.cli.local import AppTransport
from project.cli.profiles import SignIn
from project.cli.server import Server
from tests.cli.conftest import Terminal

URL = "https://chat.example.org"
ENDPOINTS = {
    "device_authorization_endpoint": f"{URL}/oauth/device_authorization",
    "token_endpoint": f"{URL}/oauth/token",
    "revocation_endpoint": f"{URL}/oauth/revoke",
}
DEVICE = {
    "device_code": "d",
    "user_code": "ABCD-EFGH",
    "verification_uri": f"{URL}/device",
    "expires_in": 60,
    "interval": 0.01,
}
TOKEN = {"access_token": "ash_new", "refresh_token": "ashr_new", "expires_in": 3600}


class OAuthServer:
    """Answers with JSON by path; what it was sent is in `requests`."""

    def __init__(self):
        self.requests = []
        self.tokens = [(400, {"error": "authorization_pending"}), (200, TOKEN)]
        self.valid_token = "ash_new"

    def answer(self, request):
        path = request.url.path
        self.requests.append((path, dict(httpx2.QueryParams(request.content.decode()))))
        if path == "/.well-known/oauth-authorization-server":
            return httpx2.Response(200, json=ENDPOINTS)
        if path == "/oauth/device_authorization":
            return httpx2.Response(200, json=DEVICE)
        if path == "/oauth/token":
            status, body = self.tokens.pop(0)
            return httpx2.Response(status, json=body)
        if path == "/oauth/revoke":
            return httpx2.Response(200)
        if request.headers["Authorization"] != f"Bearer {self.valid_token}":
            return httpx2.Response(401, json={"detail": "Send a valid API key."})
        return httpx2.Response(200, json={"user": {"username": "ada"}})


@pytest.fixture
def oauth(monkeypatch, config_folder):
    server = OAuthServer()
    make = httpx2.AsyncClient
    transport = httpx2.MockTransport(server.answer)
    monkeypatch.setattr(
        httpx2, "AsyncClient", lambda **options: make(**options, transport=transport)
    )
    monkeypatch.setattr("sys.stdin", Terminal(is_terminal=False))
    return server


async def test_a_code_in_the_browser_signs_in(oauth, capsys):
    await sign_in.log_in(URL, "")

    saved = profiles.load().servers[URL]
    assert (saved.token, saved.refresh_token) == ("ash_new", "ashr_new")
    said = capsys.readouterr().err
    assert f"Open {URL}/device\nand confirm the code ABCD-EFGH\n" in said
    assert f"Signed in to {URL} as ada." in said


@pytest.mark.parametrize(
    ("error", "sentence"),
    [("access_denied", "rejected in the browser"), ("expired_token", "expired_token")],
)
async def test_a_rejected_or_expired_code_saves_nothing(oauth, error, sentence):
    oauth.tokens = [(400, {"error": error})]

    with pytest.raises(CommandFailed, match=sentence):
        await sign_in.log_in(URL, "")
    assert profiles.load().servers == {}


async def test_a_key_is_tried_before_it_is_saved(oauth):
    with pytest.raises(CommandFailed, match="Send a valid API key"):
        await sign_in.log_in(URL, "ash_wrong")
    assert profiles.load().servers == {}

    await sign_in.log_in(URL, "ash_new")
    assert profiles.load().servers[URL] == SignIn(token="ash_new")


async def test_an_expired_token_is_renewed_and_saved(oauth):
    oauth.tokens = [(200, TOKEN)]
    expired = SignIn(
        token="ash_old",
        refresh_token="ashr_old",
        token_endpoint=ENDPOINTS["token_endpoint"],
        client_id="ashiato-cli",
    )
    profiles.remember(URL, expired)

    async with Server.connect(URL, expired) as server:
        assert (await server.me())["user"]["username"] == "ada"

    renewal = dict(oauth.requests)["/oauth/token"]
    assert renewal["refresh_token"] == "ashr_old"
    assert profiles.load().servers[URL].token == "ash_new"


async def test_a_token_that_another_command_renewed_is_used(oauth):
    old = SignIn(token="ash_old", refresh_token="ashr_old", token_endpoint="x", client_id="x")
    profiles.remember(URL, SignIn(token="ash_new", refresh_token="ashr_new"))

    async with Server.connect(URL, old) as server:
        await server.me()

    assert "/oauth/token" not in dict(oauth.requests)


async def test_a_sign_in_that_has_ended_says_how_to_sign_in_again(oauth):
    oauth.tokens = [(400, {"error": "invalid_grant"})]
    ended = SignIn(
        token="ash_old", refresh_token="ashr_old", token_endpoint=ENDPOINTS["token_endpoint"]
    )

    async with Server.connect(URL, ended) as server:
        with pytest.raises(CommandFailed, match=f"ashiato login {URL}"):
            await server.me()


async def test_signing_out_revokes_the_token(oauth):
    profiles.remember(URL, SignIn(token="a", refresh_token="ashr_x", client_id="ashiato-cli"))

    await sign_in.log_out(URL)

    assert dict(oauth.requests)["/oauth/revoke"]["token"] == "ashr_x"
    assert profiles.load().servers == {}
    with pytest.raises(CommandFailed, match="aren't signed in"):
        await sign_in.log_out(URL)


@pytest.mark.django_db(transaction=True)
async def test_the_products_own_pages_confirm_the_code(
    person_async_client, person, config_folder, monkeypatch, capsys
):
    from agents.accounts.oauth_server import server as oauth_server
    from project.asgi import application

    make = httpx2.AsyncClient
    transport = AppTransport(application)
    monkeypatch.setattr(
        httpx2, "AsyncClient", lambda **options: make(**options, transport=transport)
    )
    monkeypatch.setattr("sys.stdin", Terminal(is_terminal=False))
    monkeypatch.setattr(oauth_server.DeviceEndpoint, "INTERVAL", 1)
    signing_in = asyncio.create_task(sign_in.log_in("http://testserver", ""))
    said = ""
    while "confirm the code" not in said:
        await asyncio.sleep(0.05)
        assert not signing_in.done(), signing_in
        said += capsys.readouterr().err
    code = said.rpartition("confirm the code ")[2].strip()
    await person_async_client.post("/oauth/device", {"user_code": code, "decision": "allow"})
    await signing_in
    saved = profiles.load().servers["http://testserver"]

    await sign_in.log_out("http://testserver")

    assert f"as {person.username}." in capsys.readouterr().err
    assert saved.refresh_token
    async with Server.connect("http://testserver", SignIn(token=saved.token)) as server:
        with pytest.raises(ServerError, match="valid API key"):
            await server.me()


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("chat.example.org", "https://chat.example.org"),
        ("https://chat.example.org/chat/7/", "https://chat.example.org"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
    ],
)
def test_an_address_is_that_of_its_server(text, url, capsys):
    assert sign_in.clean_url(text) == url
    assert capsys.readouterr().err == ""


def test_an_address_without_https_is_warned_about(capsys):
    assert sign_in.clean_url("http://chat.example.org") == "http://chat.example.org"
    assert "without https" in capsys.readouterr().err
    with pytest.raises(CommandFailed, match="isn't the address of a server"):
        sign_in.clean_url("ftp://chat.example.org")
