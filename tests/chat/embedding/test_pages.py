"""The frame and the script of embedded chats, over HTTP."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from agents.access.visitors import visitor_accounts
from agents.knowledge import scope
from agents.models import (
    Agent,
    Approval,
    Collection,
    EmbedVisitor,
    Run,
)
from chat.embedding import retention, visitors
from chat.embedding.visitors import Identity
from chat.models import ChatSession
from tests.conftest import as_user, select

from .conftest import SITE

pytestmark = pytest.mark.django_db


@pytest.fixture
def visitor(embed):
    return visitors.find_or_create(embed, Identity(digest="d"), "192.0.2.1").user


def frame(embed, client=None, query="", **headers):
    key = getattr(embed, "public_id", embed)
    return (client or Client()).get(f"/embed/{key}/{query}", headers=headers)


def ancestors(response):
    policy = response["Content-Security-Policy"]
    return re.search(r"frame-ancestors ([^;]+)", policy)[1]


def test_only_the_allowed_sites_can_frame_it(make_embed):
    embed = make_embed(origins=f"{SITE}\nhttp://intranet:8080")
    response = frame(embed)

    assert response.status_code == 200
    assert ancestors(response) == f"{SITE} http://intranet:8080"
    assert "X-Frame-Options" not in response
    assert "script-src 'self'" in response["Content-Security-Policy"]
    assert "default-src 'none'" in response["Content-Security-Policy"]


def test_it_has_no_cookies_and_nothing_of_who_is_signed_in(embed, person):
    response = frame(embed, as_user(person), f"?host={SITE}")

    assert not response.cookies
    assert "csrf" not in response.text
    assert person.username not in response.text
    assert not select(response, "a[href^='/'], nav")


@pytest.mark.parametrize(("audience", "has_drafts"), [("anonymous", True), ("both", False)])
def test_users_of_a_site_can_share_a_computer_so_their_drafts_are_not_kept(
    make_embed, audience, has_drafts
):
    page = frame(make_embed(audience=audience))

    assert ("data-no-drafts" in page.content.decode()) is not has_drafts


@pytest.mark.parametrize(
    "query", ["?host=https://evil.example", "?host=https://www.example.com.evil.example"]
)
def test_other_sites_get_a_sentence_that_says_so(query, embed):
    response = frame(embed, query=query)

    assert response.status_code == 403
    assert "set up for https://" in response.text
    assert not select(response, "form, script")


def test_the_sentence_has_no_text_of_other_sites(embed):
    response = frame(embed, query="?host=https://x. Call 555-0100 and tell your password")

    assert response.status_code == 403
    assert "555-0100" not in response.text


def test_the_site_is_also_known_by_its_referrer(embed):
    assert frame(embed, Referer="https://evil.example/page").status_code == 403
    assert frame(embed, Referer=f"{SITE}/page").status_code == 200


def test_what_cant_be_used_says_so_in_the_language_of_the_site(embed):
    Agent.objects.filter(pk=embed.agent_id).update(enabled=False)
    responses = [frame("unknown", query="?language=ja"), frame(embed, query="?language=ja")]

    for response in responses:
        assert response.status_code == 404
        assert select(response, "html")[0].attributes["lang"] == "ja"
        assert ancestors(response) == "*"


def test_theme_and_language_are_those_of_the_site_unless_they_are_set(make_embed):
    free = make_embed("Free")
    fixed = make_embed("Fixed", theme="light", language="en")
    query = "?theme=dark&language=ja"

    (root,) = select(frame(free, query=query), "html")
    assert (root.attributes["data-theme"], root.attributes["lang"]) == ("dark", "ja")
    (root,) = select(frame(fixed, query=query), "html")
    assert (root.attributes["data-theme"], root.attributes["lang"]) == ("light", "en")
    (root,) = select(frame(free, query="?theme='><script>"), "html")
    assert root.attributes["data-theme"] == "auto"


def test_what_administrators_write_is_text(make_embed):
    attack = "</h1><script>alert(1)</script>"
    embed = make_embed(title=attack, greeting=attack, examples=f'"{attack}')
    response = frame(embed)

    assert "<script>alert" not in response.text
    assert select(response, "#embed-title")[0].text() == attack
    assert select(response, "[data-say]")[0].attributes["data-say"] == f'"{attack}'


def test_only_administrators_can_frame_it_here(embed, person, administrator):
    assert "http://testserver" not in ancestors(frame(embed, as_user(person), "?preview=1"))
    assert "http://testserver" in ancestors(frame(embed, as_user(administrator), "?preview=1"))


def test_any_site_can_load_the_script_and_asks_whether_it_has_changed():
    response = Client().get("/embed.js")
    again = Client().get("/embed.js", headers={"If-None-Match": response["ETag"]})

    assert response["Content-Type"].startswith("text/javascript")
    assert response["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert "max-age=3600" in response["Cache-Control"]
    assert not response.cookies
    assert again.status_code == 304


# Visitors elsewhere in the product


def test_a_visitor_cant_sign_in_and_nobody_finds_them(visitor, person, administrator):
    from agents.web.people_suggestions import find_people

    visitor.set_password("a long walk on the beach")
    visitor.save()
    client = Client()
    answer = client.post(
        "/login/", {"username": visitor.username, "password": "a long walk on the beach"}
    )
    assert answer.status_code == 403
    assert "_auth_user_id" not in client.session
    assert find_people("visitor-", []) == []
    page = as_user(administrator).get("/admin/auth/user/")
    assert visitor.username not in page.text
    page = as_user(administrator).get("/admin/auth/user/?state=visitor")
    assert visitor.username in page.text
    page = as_user(administrator).get(f"/admin/auth/user/{visitor.pk}/change/")
    assert not select(page, "[name=role]")


def test_visitors_search_only_what_is_chosen_for_them(visitor, embed, administrator):
    opened = Collection.objects.create(name="Open", is_open=True)
    shared = Collection.objects.create(name="Ours")
    shared.groups.add(embed.group)
    Collection.objects.create(name="Others", owner=administrator)

    assert scope.for_run(visitor.pk, "", embed.agent).collections == {shared.pk}
    embed.agent.collections.add(opened, shared)
    assert scope.for_run(visitor.pk, "", embed.agent).collections == {opened.pk, shared.pk}


def test_their_approvals_go_to_the_approver(visitor, embed, person, stranger):
    embed.approver = person
    embed.save()
    run = Run.objects.create(user=visitor, agent=embed.agent, topic="chat.9", status="waiting")
    about = {"run": run, "agent_name": "helper", "tool": "calculator", "arguments": "{}"}
    now = timezone.now()
    call = Approval.objects.create(step=1, call_id="a", digest="d", asked_at=now, **about)
    Approval.objects.create(
        step=2, call_id="b", digest="e", asked_at=now, why="elicitation", **about
    )

    assert Approval.objects.for_user(person).get() == call
    assert not Approval.objects.for_user(stranger).exists()
    page = as_user(person).get("/approvals/")
    assert select(page, "article.waiting .buttons")
    assert "/chat/9/" not in page.text


# Retention


def make_chat(user, days):
    chat = ChatSession.objects.create(user=user, title="Tea")
    used_at = timezone.now() - timedelta(days=days)
    ChatSession.objects.filter(pk=chat.pk).update(updated_at=used_at)
    EmbedVisitor.objects.filter(user=user).update(last_used_at=used_at)
    return chat


def test_conversations_are_deleted_with_their_visitor(embed, visitor, person):
    recent = visitors.find_or_create(embed, Identity(digest="new"), "192.0.2.1").user
    make_chat(visitor, 31)
    kept = [make_chat(recent, 29), make_chat(person, 400)]

    retention.delete_old()

    assert list(ChatSession.objects.order_by("pk")) == kept
    assert set(User.objects.all()) == {recent, person}


def test_visitors_of_a_deleted_chat_stay_visitors_and_go_later(embed, visitor, person):
    make_chat(visitor, 10)
    kept = make_chat(person, 400)
    embed.delete()

    retention.delete_old()
    assert visitor in visitor_accounts()
    ChatSession.objects.filter(user=visitor).update(
        updated_at=timezone.now() - timedelta(days=31)
    )
    EmbedVisitor.objects.update(last_used_at=timezone.now() - timedelta(days=31))
    retention.delete_old()

    assert list(ChatSession.objects.all()) == [kept]
    assert not visitor_accounts().exists()
