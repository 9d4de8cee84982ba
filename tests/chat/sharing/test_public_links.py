"""Public links show a masked copy of a chat: a level, for a time, until revoked."""

import json
import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone, translation

from agents.access import audit
from agents.models import AgentStep, AuditEntry, Run
from chat.models import ChatSession, PublicLink
from chat.people_data import retention
from chat.sessions import session_state
from chat.sharing import members, public_links, public_pages
from tests.access.audit.rows import create_question
from tests.conftest import select

pytestmark = pytest.mark.django_db

MAIL, PHONE = "ada.lovelace@example.org", "+44 20 7946 0958"


@pytest.fixture
def chat(person):
    """A chat with personal data in its title, question, answer and steps."""
    chat = ChatSession.objects.create(user=person, title=f"Who is {MAIL}?")
    run = create_question(chat, person, f"Who is {MAIL}?")
    Run.objects.filter(pk=run.pk).update(answer=f"**Ada**, {PHONE}", model="gpt-x")
    AgentStep.objects.create(
        run=run,
        number=2,
        kind="tool",
        status="done",
        action="database",
        action_input={"sql": "SELECT secret_column"},
        observation=f"secret_row of {MAIL}",
        thought="secret_plan",
        started_at=timezone.now(),
        ended_at=timezone.now(),
    )
    return chat


def publish(client, chat, level="answers", hours=720, **more):
    about = {"level": level, "hours": hours}
    return client.post(f"/chat/{chat.pk}/public/", about, **more)


def url_of(answer):
    return re.search(r"http://testserver(/public/[\w-]+/)", answer.text)[1]


def page_of(url):
    answer = Client().get(url)
    assert answer.status_code == 200
    return re.sub(r"<symbol.*?</symbol>", "", answer.text, flags=re.DOTALL)


def test_anyone_with_the_link_reads_a_masked_copy_without_an_account(person_client, chat):
    answer = Client().get(url_of(publish(person_client, chat)))
    page = answer.text

    assert answer.status_code == 200
    assert "Who is ‹email›?" in page
    assert "<strong>Ada</strong>, ‹phone›" in page
    assert not any(text in page for text in (MAIL, PHONE, "ada<", "secret"))
    assert answer.headers["Cache-Control"] == "no-store, private"
    assert "noindex" in answer.headers["X-Robots-Tag"]
    assert answer.headers["Referrer-Policy"] == "no-referrer"


def test_each_level_shows_what_it_promises(person_client, chat):
    shows = {}
    for level in PublicLink.Level.values:
        page = page_of(url_of(publish(person_client, chat, level)))
        shows[level] = tuple(
            word in page for word in ("database", "secret_row", "secret_column", "secret_plan")
        )

    assert shows == {
        "answers": (False, False, False, False),
        "steps": (True, False, False, False),
        "details": (True, True, True, True),
    }


def test_answers_link_to_results_only_if_shared(person_client, chat):
    Run.objects.update(answer="There are 5,210 of them.")
    AgentStep.objects.filter(kind="tool").update(observation='{"rows": [[5210]]}')
    pages = {
        level: page_of(url_of(publish(person_client, chat, level)))
        for level in PublicLink.Level.values
    }

    link = re.search(r'5,210 of them\.<a class="cite" href="#([\w-]+)"', pages["details"])
    assert f'<li id="{link[1]}"' in pages["details"]
    assert not any('class="cite' in pages[level] for level in ("answers", "steps"))


def test_why_a_run_failed_is_only_in_a_copy_with_full_steps(person_client, chat):
    Run.objects.update(
        answer="", status="failed", stopped_reason="error", detail="db-01.internal refused it"
    )
    pages = {
        level: page_of(url_of(publish(person_client, chat, level)))
        for level in PublicLink.Level.values
    }

    assert {level for level, page in pages.items() if "db-01.internal" in page} == {"details"}
    assert all("<span>failed</span>" in page for page in pages.values())


def test_a_copy_with_full_steps_does_not_name_guardrail_rules(person_client, chat):
    reason = "Project Falcon is secret."
    Run.objects.update(answer="", status="failed", stopped_reason="blocked", detail=reason)
    AgentStep.objects.create(
        run=Run.objects.first(),
        number=90,
        kind="guardrail",
        status="blocked",
        observation=reason,
        action_input={"rule": "Project Falcon"},
        started_at=Run.objects.first().started_at,
    )

    page = page_of(url_of(publish(person_client, chat, PublicLink.Level.DETAILS)))

    assert "#90" in page
    assert "Falcon" not in page


def test_unshared_parts_are_not_saved_in_the_copy(person_client, chat):
    for level in ("answers", "steps"):
        publish(person_client, chat, level)
    saved = json.dumps(list(PublicLink.objects.values_list("snapshot", flat=True)))

    assert "secret" not in saved
    assert MAIL not in saved
    assert PHONE not in saved


def test_the_copy_stays_as_it_was_until_the_link_is_updated(person_client, chat, person):
    url = url_of(publish(person_client, chat))
    create_question(chat, person, "And what came later?")
    assert "And what came later?" not in page_of(url)

    link = PublicLink.objects.get()
    person_client.post(f"/chat/{chat.pk}/public/{link.pk}/update/")

    assert "And what came later?" in page_of(url)


def test_an_answer_in_progress_is_left_out(person_client, chat, person):
    run = create_question(chat, person, "Still thinking about this")
    Run.objects.filter(pk=run.pk).update(status="running")

    assert "Still thinking" not in page_of(url_of(publish(person_client, chat)))


def test_revoking_a_link_deletes_its_copy(person_client, chat):
    url = url_of(publish(person_client, chat))
    link = PublicLink.objects.get()

    person_client.post(f"/chat/{chat.pk}/public/{link.pk}/revoke/")

    assert Client().get(url).status_code == 404
    assert not PublicLink.objects.exists()
    assert not ChatSession.objects.get(pk=chat.pk).is_public


def test_an_expired_link_is_closed_and_its_copy_deleted(person_client, chat):
    url = url_of(publish(person_client, chat))
    PublicLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    gone, never = Client().get(url), Client().get("/public/never-made/")

    assert (gone.status_code, gone.content) == (404, never.content)
    retention.prune()
    assert not PublicLink.objects.exists()


def test_a_link_ends_with_its_chat_and_with_its_owner(person_client, chat, person):
    url = url_of(publish(person_client, chat))
    ChatSession.objects.update(deleted_at=timezone.now())
    assert Client().get(url).status_code == 404
    ChatSession.objects.update(deleted_at=None)
    assert Client().get(url).status_code == 200
    person.is_active = False
    person.save()
    assert Client().get(url).status_code == 404
    chat.delete()
    assert not PublicLink.objects.exists()


def test_an_installation_can_turn_public_links_off(person_client, chat, settings):
    url = url_of(publish(person_client, chat))
    settings.PUBLIC_LINKS = False

    refused = publish(person_client, chat)

    assert Client().get(url).status_code == 404
    assert refused.status_code == 422
    assert "Public links are disabled on this server." in refused.text
    assert 'name="level"' not in person_client.get(f"/chat/{chat.pk}/people/").text
    assert not ChatSession.objects.get(pk=chat.pk).is_public
    run = chat.messages.get().run
    assert person_client.get(f"/traces/{run.pk}/share/").status_code == 404


def test_only_the_digest_of_the_token_is_saved(person_client, chat):
    token = url_of(publish(person_client, chat)).split("/")[2]

    assert token not in json.dumps(list(PublicLink.objects.values()), default=str)
    assert token not in person_client.get(f"/chat/{chat.pk}/people/").text


def test_the_page_says_that_the_chat_is_public(person_client, chat):
    before = person_client.get(f"/chat/{chat.pk}/")
    publish(person_client, chat)
    page = person_client.get(f"/chat/{chat.pk}/")

    shown = ".public-mark[title*='public link']:not([hidden])"
    assert (len(select(before, shown)), len(select(page, shown))) == (0, 1)
    assert len(select(page, "[title='Public link']")) == 1  # in the list
    mine = person_client.get("/account/data/").text
    assert f"/chat/{chat.pk}/public/" in mine


def test_names_of_several_authors_are_numbers(person_client, chat, stranger):
    members.add_member(chat, "eve", "write")
    create_question(chat, stranger, "And me?")

    page = page_of(url_of(publish(person_client, chat)))

    assert "User 1" in page
    assert "User 2" in page
    assert "eve" not in page


def test_creating_updating_opening_and_revoking_is_audited(person_client, chat, person):
    url = url_of(publish(person_client, chat))
    link = PublicLink.objects.get()
    for _visit in range(3):
        Client().get(url)
    person_client.post(f"/chat/{chat.pk}/public/{link.pk}/update/")
    person_client.post(f"/chat/{chat.pk}/public/{link.pk}/revoke/")

    entries = AuditEntry.objects.filter(action__startswith="session.").order_by("number")
    assert [entry.action for entry in entries] == [
        audit.PUBLISHED,
        audit.PUBLIC_OPENED,  # once per hour
        audit.REPUBLISHED,
        audit.UNPUBLISHED,
    ]
    assert {entry.subject for entry in entries} == {f"chat:{chat.pk}"}


def test_checking_whether_a_link_works_is_no_visit(person_client, chat):
    answer = Client().head(url_of(publish(person_client, chat)))

    assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "no-store, private")
    assert PublicLink.objects.get().opened == 0


def test_too_many_requests_of_an_address_are_rejected(person_client, chat, monkeypatch):
    monkeypatch.setattr(public_pages, "MAX_VISITS", 2)
    url, visitor = url_of(publish(person_client, chat)), Client()

    answers = [visitor.get(url) for _time in range(3)]

    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[-1].headers["Retry-After"] == "60"
    assert Client(REMOTE_ADDR="203.0.113.9").get(url).status_code == 200


@pytest.mark.parametrize(
    ("level", "hours"), [("everything", "24"), ("answers", "9999"), ("answers", "")]
)
def test_a_link_needs_a_level_and_a_lifetime(person_client, chat, level, hours):
    answer = publish(person_client, chat, level, hours)

    assert answer.status_code == 422
    assert "Choose what to share" in answer.text


def test_an_empty_chat_and_too_many_links_are_rejected_with_a_reason(
    person_client, chat, person
):
    empty = ChatSession.objects.create(user=person, title="Empty")
    assert "no answers to share" in publish(person_client, empty).text
    for _link in range(10):
        publish(person_client, chat)

    assert "already has 10 public links" in publish(person_client, chat).text


def test_links_of_two_tabs_at_once_are_counted_one_by_one(person, chat, monkeypatch, configure):
    """The lock is what the second one waits for, until the first is saved."""

    def wait(session):
        now = timezone.now()
        about = {"made_by": person, "level": "answers", "digest": "x", "snapshot": {}}
        times = {"updated_at": now, "expires_at": now + timedelta(hours=1)}
        return session.public_links.create(**about, **times)

    configure(chat_links=1)
    monkeypatch.setattr(session_state, "lock", wait)

    with pytest.raises(public_links.PublicLinkRejected, match="already has 1 public"):
        public_links.create(chat, person, "answers", "720")


def test_a_long_chat_has_pages_and_a_very_long_one_is_rejected(
    person_client, chat, monkeypatch
):
    monkeypatch.setattr(public_pages, "MESSAGES_PER_PAGE", 1)
    url = url_of(publish(person_client, chat))
    assert "<strong>Ada</strong>" not in page_of(url)
    assert "<strong>Ada</strong>" in page_of(f"{url}?page=2")

    monkeypatch.setattr(public_links.snapshots, "MAX_CHARS", 10)
    assert "too long for a public link" in publish(person_client, chat).text


def test_the_page_is_in_the_visitors_language(person_client, chat):
    url = url_of(publish(person_client, chat))
    with translation.override("ja"):
        page = Client(headers={"Accept-Language": "ja"}).get(url).text

    assert '<html lang="ja">' in page


def test_only_the_branch_on_the_page_is_published(person_client, chat, person):
    first = chat.messages.get()
    for text in ("An earlier attempt", "The attempt on the page"):
        run = create_question(chat, person, text)
        run.message.parent = first
        run.message.save()

    page = page_of(url_of(publish(person_client, chat)))

    assert "The attempt on the page" in page
    assert "An earlier attempt" not in page
