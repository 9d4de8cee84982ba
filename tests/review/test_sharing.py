"""Share links show one run: a level, for a time, until revoked."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from agents.access import audit
from agents.models import AgentStep, AuditEntry, Run
from agents.review.annotations import feedback
from agents.review.models import ShareLink
from tests.conftest import as_user, select
from tests.review.conftest import MAIL, PERSONAL

pytestmark = pytest.mark.django_db(transaction=True)


def share(client, run, level="person", hours=24, **more):
    return client.post(f"/traces/{run.pk}/share/", {"level": level, "hours": hours}, **more)


def link_url(answer):
    """Return the URL of the new link."""
    return re.search(r"http://testserver(/shared/[\w-]+/)", answer.text)[1]


@pytest.fixture
def link(personal_run, person):
    return link_url(share(as_user(person), personal_run))


def test_a_link_opens_the_run_without_an_account(link):
    answer = Client().get(link)
    page = answer.text

    assert answer.status_code == 200
    assert "Who is ‹email›?" in page
    assert "<strong>Ada</strong>, ‹phone›" in page
    assert "database: " in page
    assert not any(secret in page for secret in PERSONAL)
    assert answer.headers["Cache-Control"] == "no-store, private"
    assert "noindex" in answer.headers["X-Robots-Tag"]
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert not answer.cookies


def test_a_link_does_not_tell_which_guardrail_rule_matched(personal_run, person):
    reason = "Project Falcon is secret."
    judged = {"kind": "judged", "model": "m", "verdict": "violation", "confidence": 90}
    AgentStep.objects.filter(run=personal_run, number=1).update(
        kind="guardrail",
        observation=reason,
        thought="",
        action_input={"rule": "Project Falcon"},
        notes=[{**judged, "reason": reason}],
    )
    Run.objects.update(status="blocked", stopped_reason="blocked", detail=reason, answer="")

    page = Client().get(link_url(share(as_user(person), personal_run, "reviewer")))

    assert "90% sure" in page.text
    assert "Falcon" not in page.text


def test_each_level_shows_what_it_promises(personal_run, person):
    client, shows = as_user(person), {}
    AgentStep.objects.update(observation=f"{'x' * 5000} Observed {MAIL}")

    for level in ShareLink.Level.values:
        page = Client().get(link_url(share(client, personal_run, level))).text
        shows[level] = ("Observed" in page, "I look for" in page, MAIL in page)

    assert shows == {
        "person": (False, False, False),
        "reviewer": (True, True, False),
        "auditor": (True, True, True),
    }


def test_a_shared_correction_is_masked_like_its_run(personal_run, person, reviewer):
    feedback.correct(reviewer, personal_run, f"It is **Grace**, {MAIL}.", "")
    client, shows = as_user(person), {}

    for level in ShareLink.Level.values:
        page = Client().get(link_url(share(client, personal_run, level))).text
        assert "<strong>Grace</strong>" in page
        shows[level] = (MAIL in page, "Corrected by rei" in page)

    masked = (False, False)
    assert shows == {"person": masked, "reviewer": masked, "auditor": (True, True)}


def test_the_link_is_shown_once_and_saved_as_a_digest(personal_run, person):
    client = as_user(person)

    answer = share(client, personal_run)

    token = link_url(answer).split("/")[2]
    assert len(token) >= 43
    assert answer.headers["Cache-Control"] == "no-store"
    assert token not in str(ShareLink.objects.values().get())
    assert token not in client.get(f"/traces/{personal_run.pk}/").text
    assert token not in str(list(AuditEntry.objects.values()))


def missing_page(path):
    answer = Client().get(path)
    assert answer.status_code == 404
    headers = {n: v for n, v in answer.headers.items() if n != "Content-Length"}
    return answer.content, headers


def test_the_form_keeps_its_input(personal_run, person):
    answer = share(as_user(person), personal_run, "reviewer", 168)

    chosen = select(answer, "#share input[checked], #share option[selected]")
    assert [choice.attributes["value"] for choice in chosen] == ["reviewer", "168"]


def test_expired_revoked_and_unknown_links_look_the_same(link, person):
    never = missing_page("/shared/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA/")

    ShareLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    expired = missing_page(link)
    ShareLink.objects.update(
        expires_at=timezone.now() + timedelta(1), revoked_at=timezone.now()
    )

    assert missing_page(link) == expired == never
    assert b"This link has expired" in never[0]
    assert never[1]["Cache-Control"] == "no-store, private"
    assert missing_page("/shared/%00%ff%ed%a0%80/") == never


def test_a_link_is_revoked_on_the_run_page(link, personal_run, person):
    pk = ShareLink.objects.get().pk

    answer = as_user(person).post(f"/traces/{personal_run.pk}/share/{pk}/revoke/")

    assert answer.headers["Location"] == f"/traces/{personal_run.pk}/share/"
    assert Client().get(link).status_code == 404
    again = as_user(person).post(f"/traces/{personal_run.pk}/share/{pk}/revoke/")
    assert again.status_code == 404


def test_opening_a_link_is_audited_once_an_hour(link, stranger, monkeypatch):
    for _ in range(3):
        Client().get(link)
        as_user(stranger).get(link)
    opened = AuditEntry.objects.filter(action="share.opened")
    assert ShareLink.objects.get().opened == 6
    assert opened.count() == 2

    monkeypatch.setattr(audit, "REPEAT_WINDOW", timedelta())  # as if an hour had passed
    Client().get(link)
    assert opened.count() == 3


def test_openings_are_counted_and_audited(link, personal_run, stranger):
    Client().get(link)
    as_user(stranger).get(link)

    assert ShareLink.objects.get().opened == 2
    opened = AuditEntry.objects.filter(action="share.opened").order_by("pk")
    assert [entry.actor_name for entry in opened] == ["", "eve"]
    assert opened[0].subject == f"run:{personal_run.pk}"
    assert AuditEntry.objects.get(action="run.shared").detail["level"] == "person"


def test_a_reviewer_shares_no_more_than_they_see(personal_run, reviewer, auditor):
    assert share(as_user(reviewer), personal_run, "reviewer").status_code == 200

    for user in (reviewer, auditor):
        answer = share(as_user(user), personal_run, "auditor")
        assert answer.status_code == 422
        assert "To share everything, unmask this run first" in answer.text

    client = as_user(auditor)
    client.post(f"/traces/{personal_run.pk}/unmask/", {"reason": "A complaint"})
    assert MAIL in Client().get(link_url(share(client, personal_run, "auditor"))).text


def test_a_link_ends_with_its_creators_permissions(personal_run, reviewer, person):
    link = link_url(share(as_user(reviewer), personal_run))
    own = link_url(share(as_user(person), personal_run))

    reviewer.user_permissions.clear()

    assert Client().get(link).status_code == 404
    assert Client().get(own).status_code == 200
    person.is_active = False
    person.save()
    assert Client().get(own).status_code == 404


def test_the_owner_sees_and_revokes_every_link(personal_run, reviewer, person, auditor):
    share(as_user(reviewer), personal_run)
    pk, way = ShareLink.objects.get().pk, f"/traces/{personal_run.pk}/share/"

    assert as_user(auditor).post(f"{way}{pk}/revoke/").status_code == 404
    assert as_user(person).post(f"{way}{pk}/revoke/").status_code == 302
    assert ShareLink.objects.get().revoked_at


@pytest.mark.parametrize(
    "form", [{}, {"level": "all", "hours": "1"}, {"level": "person", "hours": "9999"}]
)
def test_a_link_needs_a_level_and_an_expiry(form, personal_run, person):
    answer = as_user(person).post(f"/traces/{personal_run.pk}/share/", form)

    assert answer.status_code == 422
    assert "Choose what" in answer.text
    assert not ShareLink.objects.exists()


def test_other_users_cannot_share_a_run(personal_run, stranger):
    assert share(as_user(stranger), personal_run).status_code == 404
    assert not ShareLink.objects.exists()


def test_a_link_is_read_only(link):
    for method in ("post", "put", "delete", "patch"):
        assert getattr(Client(), method)(link).status_code == 405


def test_an_htmx_request_gets_only_the_panel(personal_run, person):
    answer = share(as_user(person), personal_run, headers={"HX-Request": "true"})

    assert answer.text.startswith('<details id="share" class="share" open>')
    assert link_url(answer)


def test_a_shared_live_run_is_shown_up_to_now(personal_run, person):
    Run.objects.update(status="running", answer="", ended_at=None)
    link = link_url(share(as_user(person), personal_run, "auditor"))

    page = Client().get(link).text

    assert "This run is still in progress." in page
    assert f"It is {MAIL}, fine." in page


def test_links_are_neither_created_nor_opened_if_the_audit_log_fails(
    link, personal_run, person, unwritable
):
    client = as_user(person)
    unwritable()

    refused, opened = share(client, personal_run), Client().get(link)

    assert refused.status_code == 422
    assert "saved" in refused.text
    assert opened.status_code == 503
    assert not any(secret in opened.text for secret in ("Ada", *PERSONAL))
    assert ShareLink.objects.count() == 1
