"""The audit log page."""

import csv
import io
import json

import pytest
from asgiref.sync import sync_to_async

from agents.access import audit
from agents.access.audit import messages
from agents.models import AuditEntry
from tests.conftest import as_async_user, as_staff, as_user
from tests.review.conftest import may
from tests.sampling import one_in

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = "/admin/agents/auditentry/"


@pytest.fixture
def clerk(django_user_model):
    """A user who reads the log, without personal data."""
    return may(django_user_model.objects.create_user("clerk", is_staff=True), "view_auditentry")


@pytest.fixture
def log(person, stranger, administrator):
    audit.record(person, "run.unmasked", "run:7", reason="苦情の確認")
    audit.record(stranger, "mfa.added", audit.person(person), kind="totp")
    audit.record(administrator, "console.changed", "agent:3", name="=cmd()")


def found(client, **filters):
    page = client.get(PAGE, filters).text
    return page.partition("result_list")[2].partition("</table>")[0]


@pytest.mark.parametrize("query", one_in(4, ["苦情", "run:7", "unmasked ada", "RUN.UNMASKED"]))
def test_an_entry_is_found_by_any_of_its_text(log, administrator, query):
    shown = found(as_user(administrator), q=query)

    assert "ada unmasked personal data in run 7." in shown
    assert "eve" not in shown


def test_an_entry_is_found_by_its_subject(log, administrator, person):
    client, token = as_user(administrator), audit.person(person).token

    assert "eve added a sign-in method for ada." in found(client, q="ada")
    shown = found(client, who=token, about="mfa")
    assert "eve added a sign-in method for ada." in shown
    assert "personal data" not in shown


@pytest.mark.parametrize(("query", "number"), [("苦情", "1 entry"), ("a", "3 entries")])
def test_entries_are_counted_by_kind(log, administrator, query, number):
    page = as_user(administrator).get(PAGE, {"q": query})

    assert number in page.text.partition('class="paginator"')[2]


@pytest.mark.parametrize(
    "query", one_in(4, ["nothing\0", "half \ud800", "%", "'", "9" * 40, "()"])
)
def test_any_search_returns_a_page(log, administrator, query):
    client = as_user(administrator)

    assert client.get(PAGE, {"q": query.encode(errors="replace")}).status_code == 200
    answer = client.get(PAGE, {"about": query.encode(errors="replace")})
    assert answer.status_code == (400 if "\0" in query else 200)


def test_the_chain_can_be_verified_on_the_page(log, administrator, tamper):
    client = as_user(administrator)
    assert "The log hasn't been verified yet." in client.get(PAGE).text

    shown = client.post(f"{PAGE}verify/", follow=True).text
    assert "The audit log is intact" in shown
    assert AuditEntry.objects.first().action == "audit.verified"

    tamper("UPDATE agents_auditentry SET subject = 'x' WHERE number = 2")
    shown = client.post(f"{PAGE}verify/", follow=True).text
    assert "Entry 2 was changed" in shown


def test_an_entry_is_described_before_its_raw_data(log, administrator, person):
    entry = AuditEntry.objects.get(action="mfa.added")

    page = as_user(administrator).get(f"{PAGE}{entry.pk}/change/").text

    words, as_kept = page.split("Raw entry")
    token = audit.person(person).token
    assert "Two-factor authentication and passkeys" in words
    assert token not in words
    assert "kind: totp" in words
    assert token in as_kept
    assert "mfa.added" in as_kept


async def export_log(user, form, query=""):
    client = await as_async_user(user)
    answer = await client.post(f"{PAGE}export.{form}?{query}")
    return b"".join([part async for part in answer.streaming_content]).decode()


async def test_search_results_can_be_exported(log, administrator):
    lines = (await export_log(administrator, "jsonl", "q=agent:3")).splitlines()

    assert [json.loads(line)["sentence"] for line in lines] == ["root changed agent “=cmd()”."]
    entry = await AuditEntry.objects.afirst()
    assert (entry.action, entry.detail["filter"]) == ("audit.exported", "q=agent%3A3")


async def test_the_csv_export_has_no_formulas(log, administrator):
    await sync_to_async(audit.record)(None, "run.viewed", "=1+1")

    rows = list(csv.DictReader(io.StringIO(await export_log(administrator, "csv"))))

    assert "'=1+1" in {row["subject"] for row in rows}
    assert rows[0]["number"] == "1"


def test_full_ip_addresses_need_the_permission(clerk, administrator, person):
    client = as_user(person, REMOTE_ADDR="203.0.113.77")
    client.post("/logout/")

    masked = found(as_user(clerk), q="signin.out")
    shown = found(as_user(administrator), q="signin.out")

    assert "203.0.113.0/24" in masked
    assert "203.0.113.77" not in masked
    assert "203.0.113.77" in shown


def test_verifying_and_exporting_need_the_read_permission(stranger):
    client = as_staff(stranger)

    for way in ("", "verify/", "export.csv"):
        assert client.post(f"{PAGE}{way}").status_code == 403, way


def test_get_requests_change_nothing(administrator):
    client = as_user(administrator)

    assert client.get(f"{PAGE}verify/").status_code == 405
    assert client.get(f"{PAGE}export.csv").status_code == 405


def test_a_change_is_described_in_one_line(administrator):
    changes = {"max_steps": [10, 9], "groups": [[], ["a", "b"]], "key": "set", "email": []}
    audit.record(administrator, "console.changed", "agent:3", name="helper", changes=changes)

    shown = found(as_user(administrator), about="console")

    assert "email: changed, groups: — → a, b, key: set, max steps: 10 → 9" in shown


def test_every_action_has_a_description_and_a_kind():
    named = [value for name, value in vars(audit).items() if name.isupper()]
    actions = {value for value in named if isinstance(value, str) and "." in value}

    assert len(actions) > 40
    assert actions - messages.SENTENCES.keys() == set()
    assert {
        action.partition(".")[0] for action in messages.SENTENCES
    } == messages.CATEGORY_LABELS.keys()
