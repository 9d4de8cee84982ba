"""A user's own API keys: made and revoked on a page, with what the user may do at most."""

import json
import re
import time
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.utils import timezone

from agents.access import api_keys
from agents.access.audit import messages
from agents.accounts.users import api_key_form
from agents.db.installation import configured
from agents.models import ApiKey, AuditEntry, Quota
from chat.people_data import data_export, erasure
from tests.accounts.conftest import PASSWORD
from tests.conftest import as_user

pytestmark = pytest.mark.django_db

LIST = "/account/api-keys/"
NEW = f"{LIST}new/"
TOKEN = re.compile(r"ash_[A-Za-z0-9]{40}")


def confirmed(client):
    """Return the browser as if its user had just confirmed who they are."""
    session = client.session
    session["confirmed_at"] = time.time()
    session.save()
    return client


@pytest.fixture
def browser(person):
    return confirmed(as_user(person))


def typed(**more):
    return {"name": "Nightly report", "scopes": ["ask", "read"], "expiry": "90", **more}


def use(token, path="/api/v1/nothing"):
    """Return the status of a call with a key; 404 is the answer to a key that works."""
    return Client().get(path, headers={"Authorization": f"Bearer {token}"}).status_code


def make(browser, **more):
    page = browser.post(NEW, typed(**more))
    assert page.status_code == 200, page.context["form"].errors
    return ApiKey.objects.get(), page


def test_a_new_key_is_displayed_once_with_code_that_has_it(browser, person, agent):
    key, page = make(browser)
    token = page.context["token"]

    assert TOKEN.fullmatch(token)
    assert "no-store" in page["Cache-Control"]
    assert use(token) == 404
    assert (key.user, key.scopes, key.is_service) == (person, ["ask", "read"], False)
    assert timedelta(days=89) < key.expires_at - timezone.now() <= timedelta(days=90)
    codes = {example.key: example.code for example in page.context["examples"]}
    assert {*codes} == {"curl", "python", "node"}
    for code in codes.values():
        assert token in code
        assert agent.name in code
        assert "/v1" in code
    listed = browser.get(LIST)
    assert key.beginning in listed.text
    assert token not in listed.text


def test_the_secret_is_in_no_row_and_no_log(browser, caplog):
    caplog.set_level("DEBUG")
    _key, page = make(browser)
    token = page.context["token"]
    use(token)

    assert token not in caplog.text
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            assert token not in str(cursor.fetchall()), table


def test_the_code_of_a_key_that_can_only_read_reads(browser):
    _key, page = make(browser, scopes=["read"])

    assert [example.key for example in page.context["examples"]] == ["curl"]
    assert "/api/v1/runs" in page.text


def test_making_a_key_needs_a_confirmed_identity(ada):
    browser = as_user(ada)

    assert browser.get(NEW).url == "/account/confirm/"
    assert browser.post(NEW, typed()).url == "/account/confirm/"
    assert not ApiKey.objects.exists()
    assert browser.post("/account/confirm/", {"password": PASSWORD}).url == NEW
    make(browser)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "\u202e"),
        ("name", "x" * 81),
        ("scopes", []),
        ("scopes", ["everything"]),
        ("scopes", ["ask", "read_all"]),  # not theirs
        ("scopes", ["configure"]),
        ("expiry", "3650"),
        ("expires_on", "2020-01-01"),
        ("requests_per_minute", "0"),
        ("cost", "-1"),
        ("tokens", "many"),
    ],
)
def test_a_wrong_field_says_so_and_makes_nothing(browser, field, value):
    more = {"expiry": "date"} if field == "expires_on" else {}
    page = browser.post(NEW, typed(**more, **{field: value}))

    assert page.status_code == 422
    assert field in page.context["form"].errors
    assert not ApiKey.objects.exists()


def test_limits_become_rows_of_the_key(browser):
    key, _page = make(browser, cost="2.50", tokens="1000", requests_per_minute="7")

    limits = {(q.measure, q.window): q.limit for q in Quota.objects.filter(api_key=key)}
    assert limits == {("cost", "month"): 2_500_000, ("tokens", "month"): 1_000}
    assert key.requests_per_minute == 7
    [row] = browser.get(LIST).context["rows"]
    assert len(row.limits) == 3


def test_a_key_lasts_to_the_end_of_its_last_day(browser):
    today = timezone.localdate()
    key, _page = make(browser, expiry="date", expires_on=today.isoformat())

    assert timezone.localtime(key.expires_at).date() == today + timedelta(days=1)
    assert key.is_usable


def test_a_key_may_last_as_long_as_the_installation_allows(browser, configure):
    configure(api_key_days=45)
    choices = [value for value, _label in api_key_form.expiry_choices()]

    assert choices == ["30", "date"]
    late = (timezone.localdate() + timedelta(days=45)).isoformat()
    assert browser.post(NEW, typed(expiry="date", expires_on=late)).status_code == 422
    assert browser.post(NEW, typed(expiry="never")).status_code == 422
    make(browser, expiry="30")


def test_personal_keys_can_be_turned_off(browser, person, configure):
    _key, token = api_keys.create(person, "old", ["ask"])
    _service, of_service = api_keys.create(person, "service", ["ask"], is_service=True)
    configure(personal_api_keys=False)
    assert configured.PERSONAL_API_KEYS.value is False

    assert browser.get(NEW).status_code == browser.post(NEW, typed()).status_code == 404
    assert (use(token), use(of_service)) == (401, 404)
    assert [row.state for row in browser.get(LIST).context["rows"]] == ["stopped"]


def test_a_user_has_so_many_keys_at_most(browser, person, monkeypatch):
    monkeypatch.setattr(api_key_form, "MAX_KEYS", 2)
    for name in ("one", "two"):
        api_keys.create(person, name, ["ask"])

    assert browser.post(NEW, typed()).status_code == 422
    ApiKey.objects.filter(name="one").update(revoked_at=timezone.now())
    assert browser.post(NEW, typed()).status_code == 200


def test_a_revoked_key_opens_nothing_and_is_history(browser, person):
    key, page = make(browser)
    token = page.context["token"]

    answer = browser.post(f"{LIST}{key.pk}/revoke/")
    again = browser.post(f"{LIST}{key.pk}/revoke/")

    assert answer.status_code == again.status_code == 302
    assert use(token) == 401
    listed = browser.get(LIST).context
    assert (listed["rows"], [row.state for row in listed["ended"]]) == ([], ["revoked"])
    assert AuditEntry.objects.filter(action="key.revoked").count() == 1


def test_a_key_of_another_user_or_of_an_app_isnt_revoked_here(browser, stranger):
    key, token = api_keys.create(stranger, "theirs", ["ask"])

    assert browser.post(f"{LIST}{key.pk}/revoke/").status_code == 404
    assert browser.get(f"{LIST}{key.pk}/revoke/").status_code == 405
    assert use(token) == 404


def test_a_key_loses_what_its_user_loses(person):
    granted = Permission.objects.get(codename="review_runs")
    person.user_permissions.add(granted)
    _key, token = api_keys.create(person, "CI", ["read", "read_all", "configure"])

    assert api_keys.find(f"Bearer {token}").scopes == ["read", "read_all"]
    person.user_permissions.remove(granted)
    assert api_keys.find(f"Bearer {token}").scopes == ["read"]
    User.objects.filter(pk=person.pk).update(is_staff=True, is_superuser=True)
    assert api_keys.find(f"Bearer {token}").scopes == ["configure", "read", "read_all"]


def test_only_scopes_that_the_user_has_are_offered(browser, admin_client):
    def offered(client):
        return {
            box.data["value"] for box, _about in client.get(NEW).context["form"].scope_rows()
        }

    assert offered(browser) == {"ask", "read", "approve"}
    assert offered(confirmed(admin_client)) == {*ApiKey.Scope.values}


def test_the_audit_log_names_the_key_by_its_beginning(browser):
    key, _page = make(browser, name="Ada's notebook")
    entry = AuditEntry.objects.get(action="key.created")

    assert entry.detail["api_key"] == key.beginning
    assert "notebook" not in str(entry.detail)
    names = messages.person_names([entry])
    assert messages.sentence(entry, names).endswith(f"created API key “{key}”.")
    key.delete()
    names = messages.person_names([entry])
    assert messages.sentence(entry, names).endswith(f"created API key {key_number(entry)}.")


def key_number(entry):
    return entry.subject.partition(":")[2]


def test_the_use_of_a_key_is_saved_once_a_minute(browser, django_assert_num_queries):
    key, page = make(browser)
    token = page.context["token"]
    use(token)
    first = ApiKey.objects.get().last_used_at

    use(token)

    assert first is not None
    assert ApiKey.objects.get().last_used_at == first
    ApiKey.objects.update(last_used_at=first - timedelta(seconds=61))
    use(token)
    assert ApiKey.objects.get().last_used_at > first
    assert key.last_used_at is None


def test_an_export_has_the_keys_without_their_digests(browser, person):
    key, page = make(browser)
    texts = {name: "".join(map(str, pieces)) for name, pieces in data_export.files(person)}

    [exported] = json.loads(texts["api-keys.json"])
    assert (exported["name"], exported["prefix"]) == (key.name, key.prefix)
    for text in texts.values():
        assert key.digest not in text
        assert page.context["token"] not in text


def test_a_deleted_account_has_no_keys(person, agent):
    key, token = api_keys.create(person, "CI", ["ask"])
    Quota.objects.create(api_key=key, measure="cost", window="day", limit=1)

    erasure.begin(person, None)
    assert use(token) == 401
    erasure.finish(person)

    assert not ApiKey.objects.exists()
    assert not Quota.objects.exists()
