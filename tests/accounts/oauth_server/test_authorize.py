"""The consent page: what it says, and that nobody else can answer it."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from agents.access import api_keys
from agents.accounts.users import roles
from agents.models import ApiKey, AuditEntry, AuthorizationCode, OAuthApp
from agents.models.catalog.rights import Role
from tests.conftest import as_user

from .conftest import LOOPBACK_URI, REDIRECT_URI, Flow, make_app, post, sent_back

pytestmark = pytest.mark.django_db


def test_a_user_allows_an_app_and_it_gets_a_key(flow, person):
    page = flow.open()
    assert page.templates[0].name == "people/oauth_consent.html"
    assert page.context["app"].name == "Notes"
    assert page.context["host"] == "notes.example"
    assert len(page.context["permissions"]) == 2

    back = sent_back(flow.decide())
    assert back["state"] == "xyz"
    assert back["iss"] == "http://testserver"
    response = flow.exchange(back["code"])

    tokens = response.json()
    assert tokens["token_type"] == "Bearer"
    assert tokens["expires_in"] == 3_600
    assert tokens["scope"] == "ask read"
    assert response.headers["Cache-Control"] == "no-store"
    key = api_keys.find(f"Bearer {tokens['access_token']}")
    assert key.user == person
    assert key.app.client_id == "app_notes"
    assert key.scopes == ["ask", "read"]
    assert key.expires_at < timezone.now() + timedelta(hours=1)
    assert AuditEntry.objects.filter(action="app.allowed", subject=f"oauthapp:{key.app_id}")


def test_secrets_and_codes_are_only_saved_as_digests(flow):
    code = flow.allow()
    saved = AuthorizationCode.objects.get()
    assert code not in str(vars(saved))
    tokens = flow.exchange(code).json()

    key = ApiKey.objects.get()
    assert tokens["access_token"] not in str(vars(key))
    assert tokens["refresh_token"] not in str(vars(key.grant))
    assert tokens["refresh_token"].partition(".")[2] not in str(vars(key.grant))


def test_a_user_refuses(flow):
    back = sent_back(flow.decide("deny"))

    assert back == {
        "error": "access_denied",
        "error_description": back["error_description"],
        "state": "xyz",
        "iss": "http://testserver",
    }
    assert not AuthorizationCode.objects.exists()


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"code_challenge": None, "code_challenge_method": None}, "code_challenge"),
        ({"code_challenge_method": "plain"}, "code_challenge_method"),
        ({"code_challenge_method": None}, "code_challenge_method"),
        ({"code_challenge": "short"}, "code_challenge"),
        ({"response_type": "token"}, "response_type"),
        ({"response_type": "code token"}, "response_type"),
        ({"scope": "ask everything"}, "invalid_scope"),
        ({"resource": "https://other.example/mcp"}, "invalid_target"),
        ({"redirect_uri": "https://notes.example/other"}, "not supported by client"),
        ({"redirect_uri": None}, "redirect_uri"),
        ({"state": "a\0b"}, "invalid characters"),
        ({"redirect_uri": 'https://notes.example/"x'}, "invalid characters"),
        ({"redirect_uri": "https://notes.example/é"}, "invalid characters"),
        ({"state": "x" * 5_000}, "too long"),
    ],
)
def test_a_wrong_request_is_a_page_and_never_a_redirect(flow, changed, problem):
    for response in (flow.open(**changed), flow.decide(**changed)):
        assert response.status_code == 400
        assert problem in str(response.context["problem"])
    assert not AuthorizationCode.objects.exists()


def test_a_refusal_leads_back_only_by_a_link_of_a_registered_uri(flow):
    known = flow.open(scope="everything").context["back_url"]
    assert known.startswith(f"{REDIRECT_URI}?error=invalid_scope")
    assert known.endswith("&state=xyz&iss=http%3A%2F%2Ftestserver")

    unknown = flow.open(scope="everything", redirect_uri="https://evil.example/").context
    assert unknown["back_url"] == ""


def test_a_repeated_parameter_is_refused(flow):
    url = "/oauth/authorize?client_id=app_notes&client_id=app_other"

    assert flow.browser.get(url).status_code == 400


@pytest.mark.parametrize(
    "redirect_uri",
    [
        "https://notes.example/callback/",
        "https://notes.example/callback?x=1",
        "https://notes.example/callback#x",
        "https://notes.example:8443/callback",
        "https://notes.example@evil.example/callback",
        "https://notes.example.evil.example/callback",
        "http://notes.example/callback",
        "HTTPS://notes.example/callback",
        "https://notes.example/callback/../../evil",
        "http://127.0.0.1:8080/other",
        "http://127.0.0.1:80@evil.example/callback",
        "http://localhost:1234/callback",
        "http://127.0.0.1:99999/callback",
        "javascript:alert(1)",
        "//evil.example/callback",
    ],
)
def test_only_registered_redirect_uris_are_sent_anything(flow, redirect_uri):
    response = flow.decide(redirect_uri=redirect_uri)

    assert response.status_code == 400
    assert response.context["back_url"] == ""


def test_an_app_on_this_device_can_use_any_port(flow):
    flow.redirect_uri = "http://127.0.0.1:49152/callback"

    page = flow.open()
    tokens = flow.tokens()

    assert page.context["host"] == page.context["scheme"] == ""
    assert "access_token" in tokens


def test_an_app_can_have_a_scheme_of_its_own(person):
    make_app("app_editor", redirect_uris=["com.example.editor:/callback"])
    flow = Flow(as_user(person), "app_editor", "com.example.editor:/callback")

    assert flow.open().context["scheme"] == "com.example.editor"
    assert flow.decide().context["url"].startswith("com.example.editor:/callback?code=")


def test_scopes_that_the_user_cannot_give_are_left_out(flow, person, administrator):
    flow.scope = "ask read_all"
    assert flow.tokens()["scope"] == "ask"

    roles.set_role(person, Role.REVIEWER)
    reviewer = Flow(as_user(type(person).objects.get(pk=person.pk)), scope="ask read_all")
    assert reviewer.tokens()["scope"] == "ask read_all"


@pytest.mark.parametrize(("asked", "granted"), [("ask ask", "ask"), ("", "ask read")])
def test_scopes_are_each_granted_once_and_there_is_a_default(flow, asked, granted):
    flow.scope = asked

    assert flow.tokens()["scope"] == granted


def test_an_app_that_needs_only_what_the_user_cannot_give_is_told_so(flow):
    assert flow.open(scope="read_all").status_code == 400
    assert flow.decide(scope="read_all").status_code == 400


def test_an_allowed_app_is_not_asked_about_again(flow):
    flow.tokens()

    assert "code" in sent_back(flow.open())
    assert "code" in sent_back(flow.open(scope="ask"))
    assert flow.open(scope="ask read approve").templates[0].name == "people/oauth_consent.html"
    assert flow.open(prompt="consent").templates[0].name == "people/oauth_consent.html"


def test_a_program_on_the_device_is_asked_about_each_time(flow):
    flow.redirect_uri = LOOPBACK_URI
    flow.tokens()

    assert flow.open().templates[0].name == "people/oauth_consent.html"


def test_after_disconnecting_an_app_is_asked_about_again(flow, app):
    flow.tokens()
    flow.browser.post(f"/account/apps/{app.pk}/disconnect/")

    assert flow.open().templates[0].name == "people/oauth_consent.html"


def test_without_a_session_the_sign_in_page_comes_first(flow):
    response = Client().get("/oauth/authorize", flow.parameters())

    assert response.status_code == 302
    assert response["Location"].startswith("/login/?next=/oauth/authorize%3Fresponse_type")


def test_another_site_can_neither_frame_nor_answer_the_page(flow, person):
    page = flow.open()
    assert page["X-Frame-Options"] == "DENY"
    assert "frame-ancestors 'none'" in page["Content-Security-Policy"]
    assert "Access-Control-Allow-Origin" not in page

    browser = Client(enforce_csrf_checks=True)
    browser.force_login(person)
    forged = Flow(browser).decide()
    assert forged.status_code == 403
    assert not AuthorizationCode.objects.exists()


def test_the_page_loads_nothing_from_the_app(person):
    make_app("app_logo", client_uri="https://notes.example/")
    page = Flow(as_user(person), "app_logo").open().content.decode()

    sources = re.findall(r'(?:src|href)="([^"#]+)"', page)
    assert not [source for source in sources if "://" in source]


def test_a_name_cannot_pretend_to_be_part_of_the_page(person):
    make_app("app_odd", client_name="<b>Bank</b>\u202e\nof Notes" + "x" * 300)
    page = Flow(as_user(person), "app_odd").open()

    assert "<b>Bank" not in page.content.decode()
    assert "\u202e" not in page.context["app"].name
    assert len(page.context["app"].name) <= 80


def test_a_blocked_app_gets_nothing(flow, app):
    code = flow.allow()
    tokens = flow.tokens()
    OAuthApp.objects.update(blocked_at=timezone.now())

    assert flow.open().status_code == 400
    assert flow.exchange(code).status_code in {400, 401}
    assert flow.refresh(tokens["refresh_token"]).status_code in {400, 401}


def test_an_unknown_app_is_told_from_nothing_else(person):
    response = Flow(as_user(person), "app_nobody").open()

    assert response.status_code == 400
    assert response.context["back_url"] == ""


def test_the_host_header_does_not_choose_the_issuer(flow):
    response = Client().get(
        "/.well-known/oauth-authorization-server", headers={"Host": "testserver:6666"}
    )

    assert response.json()["issuer"] == "http://testserver"
    unauthorized = Client().get("/api/v1/chats", headers={"Host": "testserver:6666"})
    assert "6666" not in unauthorized["WWW-Authenticate"]


def test_an_inactive_user_gets_no_token(flow, person):
    code = flow.allow()
    type(person).objects.update(is_active=False)

    assert flow.exchange(code).json()["error"] == "invalid_grant"
    assert post("/oauth/token").status_code == 400
