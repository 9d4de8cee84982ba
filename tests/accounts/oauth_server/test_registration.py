"""Apps that register themselves, and those that describe themselves at their client ID."""

import json

import pytest
from django.test import Client
from django.utils import timezone

from agents.accounts.oauth_server import documents
from agents.models import AuditEntry, OAuthApp
from tests.conftest import as_user

from .conftest import REDIRECT_URI, Flow

pytestmark = pytest.mark.django_db

DOCUMENT_URL = "https://notes.example/oauth/client.json"


def register(**values):
    body = {"client_name": "Notes", "redirect_uris": [REDIRECT_URI], **values}
    return register_body(json.dumps(body))


def register_body(body):
    return Client().post("/oauth/register", body, content_type="application/json")


def test_an_app_registers_itself_and_is_connected(person):
    response = register(token_endpoint_auth_method="none")
    answer = response.json()

    assert response.status_code == 201
    assert "client_secret" not in answer
    assert answer["client_name"] == "Notes"
    assert answer["redirect_uris"] == [REDIRECT_URI]
    assert AuditEntry.objects.filter(action="app.registered").count() == 1
    assert "access_token" in Flow(as_user(person), answer["client_id"]).tokens()


def test_an_app_that_can_keep_a_secret_gets_one():
    answer = register(token_endpoint_auth_method="client_secret_post").json()

    app = OAuthApp.objects.get()
    assert answer["client_secret"]
    assert answer["client_secret_expires_at"] == 0
    assert answer["client_secret"] not in str(vars(app))


def test_what_is_not_supported_is_left_out_of_a_registration():
    answer = register(
        grant_types=["authorization_code", "refresh_token", "implicit"],
        response_types=["code", "token"],
        scope="ask openid",
        logo_uri="https://notes.example/logo.png",
    ).json()

    assert answer["grant_types"] == ["authorization_code", "refresh_token"]
    assert answer["response_types"] == ["code"]
    assert answer["scope"] == "ask"


@pytest.mark.parametrize(
    "uri",
    [
        *("http://127.0.0.1:3000/callback", "http://localhost/callback", "http://[::1]:80/cb"),
        *("com.example.app:/callback", "cursor://anysphere.cursor-mcp/oauth/callback"),
    ],
)
def test_programs_on_a_device_can_register(uri):
    assert register(redirect_uris=[uri]).status_code == 201


@pytest.mark.parametrize(
    "uri",
    [
        *(
            "http://notes.example/callback",
            "javascript:alert(1)",
            "data:text/html,x",
            "/callback",
        ),
        *("https://notes.example/#x", "https://user@notes.example/", "https://", "file:///etc"),
        *(
            "JavaScript:alert(1)",
            " javascript:alert(1)",
            "https://notes.example/\n",
            "",
            5,
            None,
        ),
        *("http://127.0.0.1.evil.example/", "http://127.0.0.1:0/", "https://notes.example/\\x"),
        *("https://[", "https://notes.example:x/", "vbscript:x", "blob:https://x/y"),
    ],
)
def test_a_redirect_uri_that_could_do_harm_is_refused(uri):
    response = register(redirect_uris=[uri])

    assert response.status_code == 400
    assert response.json()["error"] in {"invalid_redirect_uri", "invalid_client_metadata"}
    assert not OAuthApp.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        *("", "[]", "null", "{", '"x"', "5", "{}", '{"redirect_uris": "https://x.example/"}'),
        json.dumps({"redirect_uris": [REDIRECT_URI], "grant_types": ["password"]}),
        json.dumps(
            {"redirect_uris": [REDIRECT_URI], "token_endpoint_auth_method": "private_key_jwt"}
        ),
        json.dumps({"redirect_uris": [REDIRECT_URI], "client_name": ["x"]}),
        json.dumps({"redirect_uris": [REDIRECT_URI], "client_name": "x" * 2_000}),
        json.dumps({"redirect_uris": [REDIRECT_URI], "jwks": "x", "contacts": "x"})[:-2],
        b"\xff\xfe",
    ],
)
def test_a_wrong_registration_is_told_what_is_wrong(body):
    response = register_body(body)

    assert response.status_code == 400, body
    assert response.json()["error"]
    assert not OAuthApp.objects.exists()


def test_odd_names_are_saved_as_they_can_be_displayed():
    assert register(client_name="A\u0000B\u202eC").status_code == 201

    assert OAuthApp.objects.get().name.isprintable()
    assert register(client_name="").json()["client_id"]
    assert OAuthApp.objects.first().name == "notes.example"


def test_an_address_can_only_register_so_many_apps():
    statuses = [register().status_code for _app in range(22)]

    assert statuses[0] == 201
    assert statuses[-1] == 429


def test_administrators_can_turn_registration_off(configure, person):
    client_id = register(token_endpoint_auth_method="none").json()["client_id"]
    configure(app_registration=False)

    metadata = Client().get("/.well-known/oauth-authorization-server").json()
    assert "registration_endpoint" not in metadata
    assert not metadata["client_id_metadata_document_supported"]
    assert register().status_code == 400
    assert Flow(as_user(person), DOCUMENT_URL).open().status_code == 400
    assert "access_token" in Flow(as_user(person), client_id).tokens()


# Client ID metadata documents


class Document(dict):
    """What is found at the client ID, and how often it was fetched."""

    status = 200

    def __init__(self):
        super().__init__(
            client_id=DOCUMENT_URL,
            client_name="Notes",
            redirect_uris=[REDIRECT_URI],
            grant_types=["authorization_code", "refresh_token"],
            token_endpoint_auth_method="none",
        )
        self.fetched = []

    async def get(self, url):
        self.fetched.append(url)
        return self.status, json.dumps(self).encode()


@pytest.fixture
def document(monkeypatch):
    document = Document()
    monkeypatch.setattr(documents, "_get", document.get)
    return document


def test_an_app_describes_itself_at_its_client_id(document, person):
    flow = Flow(as_user(person), DOCUMENT_URL)

    assert flow.open().context["app"].name == "Notes"
    tokens = flow.tokens()

    assert "refresh_token" in tokens
    assert document.fetched == [DOCUMENT_URL]
    assert OAuthApp.objects.get().source == OAuthApp.Source.DOCUMENT


@pytest.mark.django_db(transaction=True)
async def test_a_document_is_fetched_by_the_asynchronous_server(document, person_async_client):
    response = await person_async_client.get(
        "/oauth/authorize", Flow(None, DOCUMENT_URL).parameters()
    )

    assert response.context["app"].name == "Notes"


def test_a_program_is_displayed_with_the_host_of_its_client_id(document, person):
    document["redirect_uris"] = ["http://127.0.0.1/callback"]
    flow = Flow(as_user(person), DOCUMENT_URL, "http://127.0.0.1:5000/callback")

    assert flow.open().context["publisher"] == "notes.example"


def test_a_document_is_fetched_again_after_a_while_and_used_if_that_fails(document, person):
    flow = Flow(as_user(person), DOCUMENT_URL)
    flow.open()
    document["client_name"] = "Notes 2"
    OAuthApp.objects.update(fetched_at=timezone.now() - documents.FRESH_FOR)
    assert flow.open().context["app"].name == "Notes 2"

    document.status = 500
    OAuthApp.objects.update(fetched_at=timezone.now() - documents.FRESH_FOR)
    assert flow.open().status_code == 200
    OAuthApp.objects.update(fetched_at=timezone.now() - documents.USABLE_FOR)
    assert flow.open().status_code == 400


@pytest.mark.parametrize(
    "changed",
    [
        {"client_id": "https://notes.example/other.json"},
        {"client_secret": "x"},
        {"token_endpoint_auth_method": "client_secret_basic"},
        {"redirect_uris": ["javascript:alert(1)"]},
        {"redirect_uris": []},
    ],
)
def test_a_wrong_document_is_not_used(document, person, changed):
    document.update(changed)

    assert Flow(as_user(person), DOCUMENT_URL).open().status_code == 400
    assert not OAuthApp.objects.exists()


def test_a_document_without_end_is_not_used(document, person, monkeypatch):
    async def get(url):
        return 200, b"[" * documents.MAX_BYTES

    monkeypatch.setattr(documents, "_get", get)

    assert Flow(as_user(person), DOCUMENT_URL).open().status_code == 400


@pytest.mark.parametrize("status", [302, 404, 500])
def test_a_document_that_is_not_there_is_not_used(document, person, status):
    document.status = status

    assert Flow(as_user(person), DOCUMENT_URL).open().status_code == 400
    assert not OAuthApp.objects.exists()


def test_a_document_has_to_allow_the_redirect_uri(document, person):
    flow = Flow(as_user(person), DOCUMENT_URL, "https://evil.example/callback")

    response = flow.open()

    assert response.status_code == 400
    assert response.context["back_url"] == ""


@pytest.mark.parametrize(
    "client_id",
    [
        *("https://notes.example", "https://notes.example/", "http://notes.example/c.json"),
        *("https://u:p@notes.example/c.json", "https://notes.example/a/../c.json"),
        *("https://notes.example/c.json#x", "https://[/c.json", "https://notes.example:x/c"),
        f"https://notes.example/{'x' * 500}",
    ],
)
def test_only_plain_https_urls_are_fetched(document, person, client_id):
    assert Flow(as_user(person), client_id).open().status_code == 400
    assert document.fetched == []


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "169.254.169.254", "[::1]", "10.0.0.1"]
)
def test_private_addresses_are_not_fetched(person, host, settings):
    settings.EGRESS_ALLOW = []
    url = f"https://{host}/client.json"

    assert Flow(as_user(person), url).open().status_code == 400
    assert not OAuthApp.objects.exists()


def test_documents_are_only_fetched_for_signed_in_users_and_not_too_often(document, person):
    Client().get("/oauth/authorize", {"client_id": DOCUMENT_URL})
    assert document.fetched == []

    document.status = 404
    flow = Flow(as_user(person), DOCUMENT_URL)
    for _attempt in range(15):
        flow.open()
    assert len(document.fetched) == 10
