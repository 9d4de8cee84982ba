"""Users' own sign-in settings."""

import re
import time
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.test import Client

from agents.accounts import sign_in
from agents.accounts.authentication import factors, throttle, totp
from agents.accounts.models import Authenticator, Passkey, Visit
from agents.models import AuditEntry
from tests.accounts.conftest import PASSWORD
from tests.conftest import as_user
from tests.sampling import one_in

pytestmark = pytest.mark.django_db

NEW = "mountains in the mist"
JUNK = ["", "[]", "{}", "[" * 9999, '{"answer": 1}', '{"answer": {}}', '{"answer": {"id": 1}}']


@pytest.fixture
def inside(client, ada, sign_in):
    sign_in()
    return client


@pytest.fixture
def stale(inside):
    """A page that was left open for a while."""
    session = inside.session
    session["confirmed_at"] = time.time() - 3600
    session.save()
    return inside


def elsewhere():
    browser = Client(headers={"user-agent": "Mozilla/5.0 (iPhone) Safari/600"})
    browser.post("/login/", {"username": "ada", "password": PASSWORD})
    return browser


def change_password(client, old=PASSWORD, new=NEW):
    typed = {"old_password": old, "new_password1": new, "new_password2": new}
    return client.post("/account/password/", typed)


def test_a_new_password_ends_every_other_session(inside, ada):
    other = elsewhere()

    assert change_password(inside).headers["Location"] == "/account/"

    assert inside.get("/account/").status_code == 200
    assert other.get("/account/").status_code == 302
    assert [visit.session_id for visit in Visit.objects.all()] == [inside.session.session_key]
    assert AuditEntry.objects.values_list("action", flat=True).first() == "password.set"


def test_a_wrong_or_weak_password_is_an_error_at_its_field(inside, ada):
    assert "wrong-old_password" in change_password(inside, old="no").text
    assert "wrong-new_password2" in change_password(inside, new="12345678").text

    ada.refresh_from_db()
    assert ada.check_password(PASSWORD)


@pytest.mark.parametrize("route", one_in(4, ["password/", "app/", "app/remove/", "codes/"]))
def test_changes_need_reauthentication(stale, ada, route):
    answer = stale.post(f"/account/{route}")

    assert answer.headers["Location"] == "/account/confirm/"
    assert stale.get("/account/").status_code == 200


def test_creating_a_passkey_needs_recent_authentication(stale, ada):
    asked = stale.post("/account/passkeys/", {}, content_type="application/json")

    assert asked.json() == {"to": "/account/confirm/"}


def test_reauthentication_allows_the_change(stale, ada):
    wrong = stale.post("/account/confirm/", {"password": "no"})
    assert "Wrong password or code. Try again." in wrong.text
    assert stale.get("/account/app/").status_code == 302

    stale.post("/account/confirm/", {"password": PASSWORD})
    assert stale.get("/account/app/").status_code == 200


def test_an_authenticator_app_is_set_up_with_its_code(inside, ada):
    page = inside.get("/account/app/").text
    secret = inside.session["new_secret"]
    assert secret[:4] in page
    assert f'href="otpauth://totp/Ashiato%3Aada?secret={secret}&amp;issuer=Ashiato"' in page
    assert "style=" not in page

    inside.post("/account/app/", {"code": "nonsense"})
    assert not Authenticator.objects.exists()
    told = inside.post(
        "/account/app/", {"code": totp.generate_code(secret, int(time.time()) // 30)}
    )

    assert Authenticator.objects.get().secret.reveal() == secret
    assert len(told.context["codes"]) == ada.recovery_codes.count() == 10
    assert "no-store" in told.headers["Cache-Control"]


def test_recovery_codes_are_deleted_with_the_last_factor(inside, secret, ada):
    Passkey.objects.create(user=ada, name="stick", key_id="a", public_key="b")

    inside.post("/account/app/remove/")
    assert ada.recovery_codes.count() == 10
    inside.post(f"/account/passkeys/{Passkey.objects.get().pk}/remove/")

    assert ada.recovery_codes.count() == 0
    assert not factors.has_second_factor(ada)


def test_a_required_factor_cannot_be_removed(inside, ada, secret, settings):
    settings.REQUIRE_MFA = "all"

    page = inside.post("/account/app/remove/")

    assert "Add another method before you remove this one." in page.text
    assert Authenticator.objects.exists()


def test_another_session_can_be_ended(inside, ada):
    other = elsewhere()
    visit = Visit.objects.get(session=other.session.session_key)
    assert "Safari on iPhone" in inside.get("/account/").text

    inside.post(f"/account/sessions/{visit.pk}/end/")

    assert SESSION_KEY not in other.session
    assert inside.get("/account/").status_code == 200


def test_another_users_session_and_passkey_return_404(inside, stranger):
    key = Passkey.objects.create(user=stranger, name="stick", key_id="a", public_key="b")
    browser = as_user(stranger)
    there = browser.session.session_key
    visit = Visit.objects.create(user=stranger, session_id=there, way="passkey")

    for theirs, missing in (
        (f"/account/sessions/{visit.pk}/end/", "/account/sessions/987654321/end/"),
        (f"/account/passkeys/{key.pk}/remove/", "/account/passkeys/987654321/remove/"),
    ):
        answers = [inside.post(theirs), inside.post(missing)]
        assert [answer.status_code for answer in answers] == [404, 404]
        assert answers[0].content == answers[1].content
    assert browser.get("/account/").status_code == 200


@pytest.mark.parametrize("body", one_in(4, JUNK))
@pytest.mark.parametrize("route", ["/account/passkeys/done/", "/account/confirm/passkey/done/"])
def test_any_passkey_data_gets_a_response(inside, ada, route, body):
    asked = {"/account/passkeys/done/": "/account/passkeys/"}.get(route, route[:-5])
    inside.post(asked, {}, content_type="application/json")

    answer = inside.post(route, body, content_type="application/json")

    assert answer.status_code == 200
    assert answer.json()["wrong"]


def test_the_last_activity_is_saved_once_a_minute(inside, ada):
    before = Visit.objects.get().seen_at
    inside.get("/account/")
    seen = Visit.objects.get().seen_at
    inside.get("/account/")

    assert before < seen == Visit.objects.get().seen_at


@pytest.mark.parametrize("is_fresh", one_in(2, [True, False]))
@pytest.mark.parametrize(
    ("route", "field"),
    [
        ("/account/password/", "old_password"),
        ("/account/confirm/", "password"),
        ("/account/erase/", "password"),
    ],
)
def test_every_password_form_is_rate_limited(inside, ada, settings, route, field, is_fresh):
    settings.SELF_ERASURE = True
    if not is_fresh:
        throttle.Attempts.objects.all().delete()  # as if they had never signed in from there
    typed = {field: "wrong", "name": "ada", "new_password1": NEW, "new_password2": NEW}
    for _attempt in range(throttle.NAME_AND_ADDRESS_LIMIT.free):
        assert inside.post(route, typed).status_code != 429

    answer = inside.post(route, typed | {field: PASSWORD})

    assert answer.status_code == 429
    assert "Too many attempts." in answer.text
    refused = AuditEntry.objects.filter(action="signin.failed")
    assert refused.count() == throttle.NAME_AND_ADDRESS_LIMIT.free
    ada.refresh_from_db()
    assert ada.check_password(PASSWORD)


def test_with_a_second_factor_the_password_alone_does_not_reauthenticate(stale, ada, secret):
    assert 'name="password"' not in stale.get("/account/confirm/").text
    stale.post("/account/confirm/", {"password": PASSWORD})
    assert stale.get("/account/app/").status_code == 302

    right = totp.generate_code(secret, int(time.time()) // 30)
    stale.post("/account/confirm/", {"code": right})
    assert stale.get("/account/app/").status_code == 200


def test_deleting_an_account_needs_reauthentication(stale, ada, settings):
    settings.SELF_ERASURE = True
    assert 'name="password"' not in stale.get("/account/data/").text

    typed = {"name": "ada", "password": PASSWORD}
    assert stale.post("/account/erase/", typed).headers["Location"] == "/account/confirm/"
    back = stale.post("/account/confirm/", {"password": PASSWORD})

    assert back.headers["Location"] == "/account/data/"
    assert 'name="password"' in stale.get("/account/data/").text
    assert type(ada).objects.filter(pk=ada.pk, is_active=True).exists()


def test_a_password_is_not_saved_over_one_that_was_changed_meanwhile(inside, ada, monkeypatch):
    check = sign_in.verify_password

    def meanwhile(*about):
        is_right = check(*about)
        type(ada).objects.filter(pk=ada.pk).update(password="x", is_active=False)
        return is_right

    monkeypatch.setattr(sign_in, "verify_password", meanwhile)

    answer = change_password(inside)

    assert "Your password was changed in another session." in answer.text
    ada.refresh_from_db()
    assert (ada.password, ada.is_active) == ("x", False)


def test_passwords_are_checked_in_one_place():
    """Other callers of these could allow password guessing."""
    asks = re.compile(
        r"\bcheck_password\(|\bauthenticate\(|partial\(authenticate|factors\.consume_code"
    )
    root = Path(settings.BASE_DIR)
    sources = [p for room in ("agents", "chat", "project") for p in (root / room).rglob("*.py")]
    found = {str(p.relative_to(root)) for p in sources if asks.search(p.read_text())}

    assert found == {
        "agents/accounts/sign_in.py",
        "agents/accounts/views/account.py",
        "agents/accounts/views/sign_in.py",
    }
