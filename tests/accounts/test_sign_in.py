"""Who can sign in, with what, and how often one can try."""

import dataclasses
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.hashers import MD5PasswordHasher
from django.contrib.auth.tokens import default_token_generator
from django.test import Client
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from agents.access import audit, authentication
from agents.access.audit import request_context
from agents.accounts.authentication import factors, throttle, totp
from agents.accounts.models import Attempts, Authenticator, Visit
from agents.models import AuditEntry
from agents.models.secret import EncryptedValue
from tests.accounts.conftest import PASSWORD
from tests.conftest import select
from tests.sampling import one_in

pytestmark = pytest.mark.django_db

NOW = int(time.time()) // totp.PERIOD_SECONDS


def is_in(client):
    return SESSION_KEY in client.session


def code(secret):
    return totp.generate_code(secret, int(time.time()) // totp.PERIOD_SECONDS)


def actions():
    done = AuditEntry.objects.exclude(place="").order_by("pk")
    return list(done.values_list("action", flat=True))


@pytest.fixture
def few_attempts(monkeypatch):
    """An address gets fewer attempts: each of them takes a whole request."""
    limit = dataclasses.replace(throttle.ADDRESS_LIMIT, free=8)
    monkeypatch.setattr(throttle, "ADDRESS_LIMIT", limit)


def test_a_password_signs_in_and_the_session_is_recorded(client, ada, sign_in):
    answer = sign_in(headers={"user-agent": "Mozilla/5.0 (X11; Linux) Firefox/140.0"})

    visit = Visit.objects.get()
    assert answer.headers["Location"] == "/"
    assert (visit.user, visit.session_id) == (ada, client.session.session_key)
    assert (visit.way, visit.address) == ("password", "127.0.0.1")
    assert actions() == ["signin.ok"]


@pytest.mark.parametrize(("name", "password"), [("ada", "wrong"), ("nobody", PASSWORD)])
def test_a_wrong_name_and_a_wrong_password_have_the_same_error(
    client, ada, sign_in, name, password
):
    answer = sign_in(name, password)

    assert "Wrong username or password." in answer.text
    assert not is_in(client)
    assert actions() == ["signin.failed"]


@pytest.mark.parametrize("name", ["ada", "nobody"])
def test_an_unknown_name_takes_as_long(ada, sign_in, name, monkeypatch):
    hashed = []
    encode = MD5PasswordHasher.encode
    count = lambda hasher, *about: hashed.append(1) or encode(hasher, *about)  # noqa: E731
    monkeypatch.setattr(MD5PasswordHasher, "encode", count)

    sign_in(name, "wrong")

    assert len(hashed) == 1


def test_unknown_usernames_are_not_recorded(ada, sign_in):
    sign_in("my secret password", "ada")
    sign_in("ada", "wrong")

    refused = AuditEntry.objects.filter(action=audit.SIGN_IN_FAILED).order_by("pk")
    unknown, known = refused.values_list("subject", flat=True)
    assert unknown == "person:unknown" != known
    assert "secret" not in str(list(AuditEntry.objects.values()))


def test_a_disabled_account_gets_the_same_error_as_an_unknown_one(client, ada, sign_in):
    ada.is_active = False
    ada.save()

    answer = sign_in()

    assert "Wrong username or password." in answer.text


@pytest.mark.both_databases
@pytest.mark.parametrize("typed", ["a\0da", "ada\ud800", "x" * 5000, ""])
def test_any_name_and_password_get_a_response(client, ada, sign_in, typed):
    typed = typed.encode(errors="replace").decode()

    assert sign_in(typed).status_code == 200
    assert sign_in("ada", typed).status_code == 200


@pytest.mark.parametrize("wanted", ["https://evil.example/", "//evil.example", "javascript:1"])
def test_signing_in_does_not_redirect_to_other_sites(client, ada, wanted):
    typed = {"username": "ada", "password": PASSWORD, "next": wanted}

    assert client.post("/login/", typed).headers["Location"] == "/"


def test_with_an_authenticator_app_the_password_alone_is_not_enough(
    client, ada, secret, sign_in
):
    answer = sign_in()

    assert answer.headers["Location"].startswith("/login/second/")
    assert not is_in(client)
    assert client.get("/").headers["Location"].startswith("/login/")

    client.post("/login/second/", {"code": code(secret)})
    assert is_in(client)
    assert client.session["proved_twice"]


@pytest.mark.both_databases
def test_a_code_works_once(client, ada, secret, sign_in):
    right = code(secret)
    other = Client()
    for browser in (client, other):
        browser.post("/login/", {"username": "ada", "password": PASSWORD})
        browser.post("/login/second/", {"code": right})

    assert is_in(client)
    assert not is_in(other)


def test_old_and_wrong_codes_are_rejected(client, ada, secret, sign_in):
    sign_in()
    for wrong in (totp.generate_code(secret, NOW - 10), "", "x" * 200, "１２３"):
        answer = client.post("/login/second/", {"code": wrong})
        assert "Wrong code" in answer.text

    assert not is_in(client)


def test_the_codes_match_the_totp_standard():
    secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"  # RFC 6238, appendix B

    assert totp.generate_code(secret, 59 // 30) == "287082"
    assert totp.generate_code(secret, 1111111109 // 30) == "081804"
    assert totp.generate_code(secret, 20000000000 // 30) == "353130"


def test_a_recovery_code_works_once(client, ada, secret, sign_in):
    first, *others = factors.create_recovery_codes(ada)
    for typed in (first.upper(), first):
        sign_in()
        client.post("/login/second/", {"code": typed.replace("-", " ")})
        assert is_in(client) is (typed == first.upper())
        client.post("/logout/")

    assert ada.recovery_codes.count() == len(others) == 9


def test_a_recovery_code_works_when_the_app_secret_is_unreadable(client, ada, secret, sign_in):
    first, *_others = factors.create_recovery_codes(ada)
    Authenticator.objects.update(secret=EncryptedValue("written with a key that is gone"))
    sign_in()

    assert client.post("/login/second/", {"code": code(secret)}).status_code == 200
    client.post("/login/second/", {"code": first})
    assert is_in(client)


def test_the_second_step_needs_the_first(client, ada, secret):
    answer = client.post("/login/second/", {"code": code(secret)})

    assert answer.headers["Location"].startswith("/login/")
    assert not is_in(client)


def test_a_passkey_challenge_is_bound_to_its_user(client, ada, secret, sign_in):
    sign_in()
    client.post("/login/passkey/")
    session = client.session
    session["halfway"] = session["halfway"] | {"at": 0}
    session.save()

    body = {"answer": {"rawId": "AAAA"}}
    answer = client.post("/login/passkey/done/", body, content_type="application/json")

    assert answer.json() == {"wrong": "The request timed out. Try again."}


@pytest.mark.parametrize("is_halfway", [True, False])
def test_a_rejected_passkey_is_audited(client, ada, secret, sign_in, is_halfway):
    if is_halfway:
        sign_in()
    client.post("/login/passkey/")

    body = {"answer": {"rawId": "AAAA"}}
    answer = client.post("/login/passkey/done/", body, content_type="application/json")

    assert "wrong" in answer.json()
    refused = AuditEntry.objects.get(action=audit.SIGN_IN_FAILED)
    assert refused.detail == {"way": "passkey"}
    assert (refused.subject == factors.audit_subject(ada)) is is_halfway


def test_invalid_passkey_data_does_not_fill_the_log(client):
    body = {"answer": {"rawId": "AAAA"}}
    send = lambda: client.post("/login/passkey/done/", body, content_type="application/json")  # noqa: E731

    told = [send().json()["wrong"] for _ in range(20)]

    assert "Too many attempts." in told[-1]
    assert AuditEntry.objects.filter(action=audit.SIGN_IN_FAILED).count() < 10


def test_a_password_change_ends_a_half_finished_sign_in(client, ada, secret, sign_in):
    sign_in()
    ada.set_password("another long walk")
    ada.save()

    answer = client.post("/login/second/", {"code": code(secret)})

    assert answer.headers["Location"] == "/login/"
    assert not is_in(client)


def test_signing_in_changes_the_session_key(client, ada, secret, sign_in):
    sign_in()
    halfway = client.session.session_key
    client.post("/login/second/", {"code": code(secret)})

    assert client.session.session_key != halfway


def test_signing_out_is_audited_and_ends_the_session(client, ada, sign_in):
    sign_in()

    assert client.post("/logout/").headers["Location"] == "/login/"
    assert not Visit.objects.exists()
    assert actions() == ["signin.ok", "signin.out"]


@pytest.mark.both_databases
def test_after_five_wrong_passwords_the_right_one_has_to_wait(client, ada, sign_in):
    for _attempt in range(throttle.NAME_AND_ADDRESS_LIMIT.free):
        sign_in(password="wrong")

    answer = sign_in()
    assert answer.status_code == 429
    assert "Too many attempts." in answer.text

    later(timedelta(seconds=throttle.NAME_AND_ADDRESS_LIMIT.free))
    assert sign_in().status_code == 302


def later(time):
    """Let this much time pass for all waits."""
    for row in Attempts.objects.exclude(wait_until=None):
        row.wait_until -= time
        row.save()


def test_waits_grow_to_a_maximum():
    waits = [throttle.NAME_AND_ADDRESS_LIMIT.wait(count) for count in (4, 5, 6, 10, 50)]

    assert waits[0] is None
    assert [wait.total_seconds() for wait in waits[1:]] == [1, 2, 32, 900]


def test_unknown_names_are_throttled_as_well(client, ada, sign_in):
    for _attempt in range(throttle.NAME_AND_ADDRESS_LIMIT.free):
        sign_in("nobody", "wrong")

    assert sign_in("nobody").status_code == 429
    assert sign_in("ada").status_code == 302


@pytest.mark.both_databases
def test_users_cannot_be_locked_out_by_others(client, ada, sign_in):
    sign_in()
    client.post("/logout/")
    for number in range(40):
        sign_in(password="wrong", REMOTE_ADDR=f"192.0.2.{number}")

    assert sign_in().status_code == 302
    assert sign_in(REMOTE_ADDR="198.51.100.1").status_code == 302
    client.post("/logout/")
    for row in Attempts.objects.exclude(wait_until=None):
        assert row.wait_until - timezone.now() < throttle.NAME_LIMIT.longest


@pytest.mark.usefixtures("few_attempts")
def test_many_names_from_one_address_are_throttled(client, ada, sign_in):
    for number in range(throttle.ADDRESS_LIMIT.free):
        sign_in(f"name{number}", "wrong", REMOTE_ADDR="2001:db8::1")

    assert sign_in(REMOTE_ADDR="2001:db8::ffff").status_code == 429
    assert sign_in(REMOTE_ADDR="2001:db8:1::1").status_code == 302


@pytest.mark.usefixtures("few_attempts")
def test_refused_attempts_write_nothing(client, ada, sign_in):
    for number in range(throttle.ADDRESS_LIMIT.free):
        sign_in(f"name{number}", "wrong")
    before = Attempts.objects.count()

    assert sign_in("another", "wrong").status_code == 429
    assert Attempts.objects.count() == before


@pytest.mark.usefixtures("few_attempts")
@pytest.mark.parametrize("way", one_in(2, ["passkey", "password"]))
def test_signing_in_to_an_own_account_does_not_reset_the_throttle(
    rf, ada, stranger, sign_in, client, way
):
    for number in range(throttle.ADDRESS_LIMIT.free * 2):
        sign_in(f"name{number}", "wrong")
        later(timedelta(hours=1))
        if way == "password":
            sign_in()
            client.post("/logout/")
        else:
            throttle.record_success("ada", "127.0.0.1")

    there = throttle._keys("x", "127.0.0.1")[1]
    assert Attempts.objects.get(key=there).count == throttle.ADDRESS_LIMIT.free * 2
    later(timedelta(hours=1))
    sign_in("one more", "wrong")
    sign_in()
    client.post("/logout/")
    assert sign_in("eve", "wrong").status_code == 429


@pytest.mark.usefixtures("few_attempts")
def test_many_users_behind_one_address_can_sign_in(client, django_user_model, sign_in):
    for number in range(throttle.ADDRESS_LIMIT.free + 3):
        name = f"name{number}"
        django_user_model.objects.create_user(name, password=PASSWORD)
        assert sign_in(name).status_code == 302
        client.post("/logout/")


@pytest.mark.usefixtures("few_attempts")
def test_known_browsers_are_not_throttled_with_their_address(client, ada, sign_in):
    sign_in()
    client.post("/logout/")
    for number in range(throttle.ADDRESS_LIMIT.free + 1):
        sign_in(f"name{number}", "wrong")

    assert sign_in("somebody", "else").status_code == 429
    assert sign_in().status_code == 302


def test_only_trusted_proxies_set_the_client_address(rf, settings):
    told = {"HTTP_X_FORWARDED_FOR": "203.0.113.9, 198.51.100.7, 10.0.0.2"}
    request = rf.get("/", REMOTE_ADDR="10.0.0.1", **told)

    assert request_context.client_address(request) == "10.0.0.1"
    settings.PROXIES = ["10.0.0.0/8"]
    assert request_context.client_address(request) == "198.51.100.7"


CHAINS = {
    # Only the proxy that we know is believed, and about its neighbour only.
    ("198.51.100.7", "10.0.0.1"): "198.51.100.7",
    ("203.0.113.9, 198.51.100.7", "10.0.0.1"): "198.51.100.7",
    ("10.0.0.9, 198.51.100.7", "10.0.0.1"): "198.51.100.7",
    ("198.51.100.7, 10.0.0.3, 10.0.0.2", "10.0.0.1"): "198.51.100.7",
    ("198.51.100.7", "192.0.2.1"): "192.0.2.1",
    ("10.0.0.1", "192.0.2.1"): "192.0.2.1",
    ("127.0.0.1, , ", "192.0.2.1"): "192.0.2.1",
    # If only our own proxies are named, the last of them counts as the client.
    ("10.0.0.3", "10.0.0.1"): "10.0.0.3",
    ("", "10.0.0.1"): "10.0.0.1",
    (",,", "10.0.0.1"): "10.0.0.1",
    # A value that isn't an address ends the chain: earlier ones aren't from our proxies.
    ("198.51.100.7, unknown", "10.0.0.1"): "10.0.0.1",
    ("<script>", "10.0.0.1"): "10.0.0.1",
    ("198.51.100.7:4711", "10.0.0.1"): "198.51.100.7",
    ("[2001:db8::7]:4711", "10.0.0.1"): "2001:db8::7",
    ("::ffff:198.51.100.7", "10.0.0.1"): "198.51.100.7",
    ("198.51.100.7", "::ffff:10.0.0.1"): "198.51.100.7",
}


@pytest.mark.parametrize(("told", "found"), CHAINS)
def test_a_chain_of_addresses_is_read_from_its_trusted_end(rf, settings, told, found):
    settings.PROXIES = ["10.0.0.0/8"]

    request = rf.get("/", HTTP_X_FORWARDED_FOR=told, REMOTE_ADDR=found)

    assert request_context.client_address(request) == CHAINS[told, found]


@pytest.mark.usefixtures("few_attempts")
def test_throttle_session_and_log_have_the_same_address(client, ada, sign_in, settings):
    settings.PROXIES = ["10.0.0.1"]
    for number in range(throttle.ADDRESS_LIMIT.free):
        forged = f"192.0.2.{number}, 203.0.113.5"
        sign_in("x", "wrong", HTTP_X_FORWARDED_FOR=forged, REMOTE_ADDR="10.0.0.1")
        later(timedelta(hours=1))
    sign_in("x", "wrong", HTTP_X_FORWARDED_FOR="203.0.113.5", REMOTE_ADDR="10.0.0.1")

    waits = sign_in(HTTP_X_FORWARDED_FOR="203.0.113.5", REMOTE_ADDR="10.0.0.1")
    assert waits.status_code == 429
    sign_in(HTTP_X_FORWARDED_FOR="203.0.113.6", REMOTE_ADDR="10.0.0.1")
    assert Visit.objects.get().address == "203.0.113.6"
    entry = AuditEntry.objects.get(action=audit.SIGNED_IN)
    assert "203.0.113.6" in entry.person.decrypt(entry.place)


def test_privileged_users_must_set_up_a_second_factor(client, ada, sign_in, settings):
    settings.REQUIRE_MFA = "staff"
    ada.is_staff = True
    ada.save()

    answer = sign_in()
    assert answer.headers["Location"].startswith("/login/app/")
    client.get("/login/app/")
    answer = client.post("/login/app/", {"code": code(client.session["new_secret"])})

    assert is_in(client)
    assert len(answer.context["codes"]) == 10
    assert ada.recovery_codes.count() == 10


def test_a_session_without_a_required_factor_is_rejected(client, ada, sign_in, settings):
    sign_in()
    settings.REQUIRE_MFA = "all"
    middleware = "agents.web.middleware.RequireMfaMiddleware"
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, middleware]

    browser = Client()
    browser.cookies = client.cookies
    answer = browser.get("/")

    assert answer.headers["Location"] == "/login/?next=/"
    assert not is_in(browser)


@pytest.mark.parametrize(
    ("demanded", "is_known"), [("off", True), ("staff", True), ("all", False)]
)
def test_a_socket_needs_the_required_factors(
    client, ada, sign_in, settings, demanded, is_known
):
    sign_in()
    settings.REQUIRE_MFA = demanded

    assert authentication.session_user(client.session).is_authenticated is is_known


def test_a_link_to_set_a_password_works_once(admin_client, ada):
    page = admin_client.post(f"/admin/auth/user/{ada.pk}/link/")
    link = page.context["link"]
    guest = Client()
    new = {"new_password1": "mountains in the mist", "new_password2": "mountains in the mist"}

    assert "Welcome, ada" in guest.get(link).text
    done = guest.post(link, new)
    assert done.headers["Location"] == "/login/"
    shown = guest.get("/login/")
    assert "Password set." in shown.text
    assert select(shown, "input[type=password][autocomplete=current-password][autofocus]")
    again = guest.get("/login/").text
    assert "Password set." not in again
    assert 'value="ada"' not in again
    assert guest.get(link).status_code == 404
    assert guest.get("/welcome/AAAA/x-y/").status_code == 404
    ada.refresh_from_db()
    assert ada.check_password("mountains in the mist")
    assert "no-store" in page.headers["Cache-Control"]


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_a_link_that_is_used_several_times_at_once_works_once(ada):
    uid = urlsafe_base64_encode(force_bytes(ada.pk))
    link = f"/welcome/{uid}/{default_token_generator.make_token(ada)}/"
    words = [f"mountains in the mist {number}" for number in range(6)]
    together = threading.Barrier(len(words))

    def use(word):
        browser = Client()
        browser.get("/login/")
        together.wait(10)
        return browser.post(link, {"new_password1": word, "new_password2": word}).status_code

    with ThreadPoolExecutor(len(words)) as threads:
        told = dict(zip(words, threads.map(use, words), strict=True))

    ada.refresh_from_db()
    taken = [word for word, status in told.items() if status == 302]
    assert sorted(told.values()) == [302, 404, 404, 404, 404, 404]
    assert ada.check_password(taken[0])
    kept = AuditEntry.objects.filter(action=audit.PASSWORD_SET)
    assert [entry.detail for entry in kept if entry.detail] == [{"by": "link"}]


@pytest.mark.parametrize("uid", ["MQ", "LTE", "%00", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5"])
def test_any_link_gets_a_response(client, uid):
    assert client.get(f"/welcome/{uid}/a-b/").status_code == 404


def test_the_console_uses_the_same_sign_in_page(client, ada, sign_in):
    assert client.get("/admin/").headers["Location"] == "/admin/login/?next=/admin/"
    answer = client.get("/admin/login/?next=/admin/auth/")
    assert answer.headers["Location"] == "/login/?next=/admin/auth/"
    sign_in()
    assert client.get("/admin/login/").status_code == 403
