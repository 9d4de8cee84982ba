"""Every view of another user's run is audited, and the log can't be changed."""

from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.apps import apps
from django.contrib.auth.models import AnonymousUser
from django.db import OperationalError

from agents.access import audit
from agents.models import Agent, Approval, AuditEntry, ReviewScope
from agents.review.models import Review
from chat.models import ChatSession, Message
from tests.conftest import as_async_user, as_user, frames_until, tab
from tests.review.conftest import MAIL, PERSONAL, may

pytestmark = pytest.mark.django_db(transaction=True)


ACCOUNTS = r"^(signin|person|rights|console)\."


def audit_entries():
    return [
        (e.actor_name, e.action, e.subject, e.detail)
        for e in AuditEntry.objects.exclude(action__regex=ACCOUNTS).order_by("number")
    ]


def test_viewing_another_users_run_is_audited_once_an_hour(personal_run, reviewer, monkeypatch):
    client, page = as_user(reviewer), f"/traces/{personal_run.pk}/"

    for _ in range(3):
        client.get(page)

    seen = ("rei", "run.viewed", f"run:{personal_run.pk}", {"door": "page"})
    assert audit_entries() == [seen]
    monkeypatch.setattr(audit, "REPEAT_WINDOW", timedelta())  # as if an hour had passed
    client.get(page)
    assert audit_entries() == [seen, seen]


async def test_every_way_to_read_a_run_is_audited(personal_run, reviewer):
    client = await as_async_user(reviewer)
    pk = personal_run.pk

    answer = await client.get(f"/api/runs/{pk}/events/")
    assert [part async for part in answer.streaming_content]
    async with tab(reviewer, f"/ws/runs/{pk}/") as page:
        await frames_until(page, f"run-{pk}")
    await client.get(f"/traces/{pk}/export.json")

    doors = [detail for _, _, _, detail in await sync_to_async(audit_entries)()]
    assert doors == [{"door": "api"}, {"door": "socket"}, {"door": "export"}, {"form": "json"}]


def test_reading_in_the_queue_is_audited_once(personal_run, reviewer):
    Review.objects.create(run=personal_run)

    for _ in range(2):
        assert as_user(reviewer).get("/review/").status_code == 200

    assert audit_entries() == [
        ("rei", "run.viewed", f"run:{personal_run.pk}", {"door": "queue"})
    ]


def test_viewing_own_runs_is_not_audited(personal_run, person):
    as_user(person).get(f"/traces/{personal_run.pk}/")

    assert audit_entries() == []


def test_a_rejected_request_is_not_audited(personal_run, stranger):
    assert as_user(stranger).get(f"/traces/{personal_run.pk}/").status_code == 404
    assert audit_entries() == []


def test_an_entry_survives_the_deletion_of_its_user(personal_run, reviewer):
    audit.record(reviewer, "run.exported", personal_run, form="json")

    reviewer.delete()
    personal_run.delete()

    entry = AuditEntry.objects.get(action="run.exported")
    assert (entry.actor, entry.actor_name) == (None, "rei")


def test_system_actions_have_no_user():
    entry = audit.record(AnonymousUser(), "share.opened", "run:7", link=3)

    assert (entry.actor, entry.actor_name, entry.subject) == (None, "", "run:7")


def test_administrators_can_read_the_log_and_no_one_can_change_it(administrator):
    entry = audit.record(administrator, "run.unmasked", "run:7", reason="苦情の確認")
    client = as_user(administrator)

    assert "苦情の確認" in client.get("/admin/agents/auditentry/").text
    assert client.get(f"/admin/agents/auditentry/{entry.pk}/change/").status_code == 200
    for way in ("add", f"{entry.pk}/delete"):
        assert client.post(f"/admin/agents/auditentry/{way}/").status_code == 403
    client.post(f"/admin/agents/auditentry/{entry.pk}/change/", {"action": "nothing"})
    assert AuditEntry.objects.get(number=entry.number).action == "run.unmasked"


def test_the_console_masks_other_users_runs(personal_run, administrator, person):
    client, rows = as_user(administrator), ("run", "agentstep", "runevent", "approval")
    models = {name: apps.get_model("agents", name) for name in rows}

    pages = [client.get(f"/admin/agents/{name}/") for name in rows]
    for name, model in models.items():
        keys = model.objects.values_list("pk", flat=True)
        pages += [client.get(f"/admin/agents/{name}/{pk}/change/") for pk in keys]
    pages.append(client.get(f"/admin/agents/run/{personal_run.pk}/delete/"))

    assert {page.status_code for page in pages} == {200}
    assert not [p for p in pages if any(s[:5] in p.text for s in PERSONAL)]
    assert [detail for *_, detail in audit_entries()] == [{"door": "admin"}]


def test_an_administrator_sets_a_reviewers_scope(administrator, reviewer):
    clerk = Agent.objects.create(name="clerk")
    form = {"user": reviewer.pk, "agents": [clerk.pk]}

    answer = as_user(administrator).post("/admin/agents/reviewscope/add/", form)

    assert answer.status_code == 302
    assert list(ReviewScope.objects.get().agents.all()) == [clerk]
    shown = as_user(administrator).get("/admin/agents/reviewscope/").text
    assert "clerk" in shown


def test_a_reviewer_cannot_decide_approvals(personal_run, auditor):
    Approval.objects.update(verdict="waiting")
    approval = Approval.objects.get()
    form = {"verdict": "approve", f"digest-{approval.pk}": approval.digest}

    answer = as_user(auditor).post(f"/approvals/{approval.pk}/", form)

    assert answer.status_code == 404
    assert Approval.objects.get().is_waiting
    page = as_user(auditor).get(f"/traces/{personal_run.pk}/").text
    assert "Reject" not in page


def test_a_reviewer_out_of_scope_sees_nothing(personal_run, reviewer):
    scope = ReviewScope.objects.create(user=reviewer)
    scope.agents.add(Agent.objects.create(name="another"))

    assert as_user(reviewer).get(f"/traces/{personal_run.pk}/").status_code == 404
    assert may(reviewer).has_perm("agents.review_runs")


@pytest.mark.parametrize("door", ["/traces/{}/", "/traces/{}/replay/", "/traces/{}/steps/1/"])
def test_a_run_is_not_shown_if_the_audit_log_fails(
    door, personal_run, reviewer, person, unwritable
):
    own, others, page = as_user(person), as_user(reviewer), door.format(personal_run.pk)
    unwritable()

    refused = others.get(page)

    assert (refused.status_code, refused["Retry-After"]) == (503, "30")
    assert "Temporarily unavailable" in refused.text
    assert not any(text in refused.text for text in ("Ada", *PERSONAL))
    assert own.get(page).status_code == 200


async def test_a_socket_shows_nothing_if_the_audit_log_fails_and_retries(
    personal_run, reviewer, monkeypatch
):
    bulk_create = AuditEntry.objects.bulk_create

    def fail_to_save(entries):
        if entries[0].action == audit.VIEWED:
            raise OperationalError("server closed the connection unexpectedly")
        return bulk_create(entries)

    monkeypatch.setattr(AuditEntry.objects, "bulk_create", fail_to_save)

    async with tab(reviewer, f"/ws/runs/{personal_run.pk}/") as page:
        closed = await page.receive_output()

    assert closed == {"type": "websocket.close", "code": 4503}


@pytest.fixture
def message(personal_run, person):
    chat = ChatSession.objects.create(user=person, title=f"Who is {MAIL}?")
    about = {"author": person, "run": personal_run, "client_id": "a"}
    return Message.objects.create(session=chat, text=f"Who is {MAIL}?", **about)


def test_the_console_masks_other_users_messages_and_audits_views(
    message, administrator, person
):
    chat, client = message.session, as_user(administrator)
    pages = [
        "/admin/chat/message/",
        f"/admin/chat/message/{message.pk}/change/",
        "/admin/chat/chatsession/",
        f"/admin/chat/chatsession/{chat.pk}/change/",
        f"/admin/chat/chatsession/{chat.pk}/delete/",
    ]

    shown = [client.get(page).text for page in pages]

    assert [page for page, html in zip(pages, shown, strict=True) if MAIL in html] == []
    assert all("‹email›" in html for html in shown)
    looked = [(who, subject) for who, _, subject, _ in audit_entries()]
    assert looked == [("root", f"message:{message.pk}"), ("root", f"chatsession:{chat.pk}")]


def test_the_console_search_does_not_find_masked_text(message, person):
    other = type(person).objects.create_user("stan", is_staff=True)
    client = as_user(may(other, "view_message", "view_chatsession"))

    for kind in ("message", "chatsession"):
        found = client.get(f"/admin/chat/{kind}/", {"q": "Who is"}).text
        assert "0 results" in found
        found = client.get(f"/admin/chat/{kind}/", {"q": person.username}).text
        assert "‹email›" in found
