"""Feedback on runs: permissions, what is saved, and notifications."""

import re
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import RequestFactory

from agents.models import (
    Agent,
    AuditEntry,
    GuardrailHit,
    GuardrailPattern,
    GuardrailVerdict,
    ReviewScope,
    Run,
)
from agents.review.annotations import feedback
from agents.review.models import Example, Label, Note, Rating, Review
from agents.review.run_details import run_page
from chat.models import Message
from tests.conftest import as_async_user, as_user, frames_until, tab
from tests.review.conftest import MAIL
from tests.sampling import one_in

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

HTMX = {"HX-Request": "true"}


@pytest.fixture
def chat(person):
    return person.chat_sessions.create(title="Sums")


@pytest.fixture
def run(chat, agent):
    run = Run.objects.create(
        user=chat.user,
        agent=agent,
        agent_name=agent.name,
        topic=chat.topic,
        query="6 * 7",
        answer="It is **41**.",
        status="completed",
    )
    Message.objects.create(session=chat, author=chat.user, run=run, text="6 * 7", client_id="a")
    run.steps.create(number=1, kind="tool", status="done", started_at=run.started_at)
    return run


@pytest.fixture
def other(db):
    other = User.objects.create_user("kai")
    other.user_permissions.add(Permission.objects.get(codename="review_runs"))
    return other


# Thumbs


def test_a_rating_is_given_changed_and_removed(run, person):
    client, path = as_user(person), f"/traces/{run.pk}/rating/"

    client.post(path, {"rating": "bad"})
    client.post(path, {"reason": "wrong", f"comment-{run.pk}": "It is 42."})
    rating = Rating.objects.get()
    assert (rating.is_good, rating.reason, rating.comment) == (False, "wrong", "It is 42.")

    client.post(path, {"rating": "good"})
    rating = Rating.objects.get()
    assert (rating.is_good, rating.reason, rating.comment) == (True, "", "")

    client.post(path, {"rating": "none"})
    assert not Rating.objects.exists()


def test_toggling_a_reason_off_keeps_the_comment(run, person):
    client, path = as_user(person), f"/traces/{run.pk}/rating/"
    said = {"reason": "slow", f"comment-{run.pk}": "A minute!"}

    client.post(path, said)
    client.post(path, said)

    rating = Rating.objects.get()
    assert (rating.is_good, rating.reason, rating.comment) == (False, "", "A minute!")


def test_the_response_to_a_rating_shows_what_was_saved(run, person):
    path = f"/traces/{run.pk}/rating/"

    shown = as_user(person).post(path, {"rating": "bad"}, headers=HTMX).text

    assert 'data-rated="bad"' in shown
    assert "<html" not in shown
    assert '<details class="reasons" open' in shown
    assert "Didn&#x27;t follow my instructions" in shown


def test_without_htmx_a_rating_redirects_to_the_answer(run, person, chat):
    referer = {"Referer": f"http://testserver/chat/{chat.pk}/?before=9"}

    answer = as_user(person).post(
        f"/traces/{run.pk}/rating/", {"rating": "good"}, headers=referer
    )

    assert answer.headers["Location"] == f"/chat/{chat.pk}/?before=9#rating-{run.pk}"


@pytest.mark.parametrize(
    "page",
    one_in(
        4,
        [
            "http://evil.example/traces/",
            "http://testserver",
            "http://testserver?next=1",
            "http://testserver//evil.example/",
            "http://testserver/\\evil.example/",
            "http://testserver/nowhere/",
            "http://[",
            "\0",
        ],
    ),
)
def test_a_form_without_a_safe_referrer_redirects_to_the_run(run, person, page):
    referer = {"Referer": page}

    answer = as_user(person).post(f"/traces/{run.pk}/flag/", {"why": "x"}, headers=referer)

    assert answer.headers["Location"] == f"/traces/{run.pk}/#judge-{run.pk}"


def test_a_corrected_form_redirects_to_the_run(run, reviewer):
    referer = {"Referer": f"http://testserver/traces/{run.pk}/notes/"}

    answer = as_user(reviewer).post(
        f"/traces/{run.pk}/labels/", {"label": "odd"}, headers=referer
    )

    assert answer.headers["Location"] == f"/traces/{run.pk}/#judge-{run.pk}"


def test_a_live_run_cannot_be_rated(run, person):
    Run.objects.update(status="running")

    answer = as_user(person).post(f"/traces/{run.pk}/rating/", {"rating": "good"})

    assert answer.status_code == 422
    assert "This run is still in progress. Try again when it has finished." in answer.text
    assert not Rating.objects.exists()


def test_the_owner_can_flag_an_answer_with_a_rating(run, person):
    said = {"rating": "flag", f"comment-{run.pk}": "It is 42."}

    shown = as_user(person).post(f"/traces/{run.pk}/rating/", said, headers=HTMX)

    review = Review.objects.get()
    assert (review.why, review.flagged_by, review.is_open) == ("It is 42.", person, True)
    assert "A reviewer will look at this." in shown.text


def test_only_the_owner_can_rate(run, reviewer):
    answer = as_user(reviewer).post(f"/traces/{run.pk}/rating/", {"rating": "good"})

    assert answer.status_code == 404
    assert not Rating.objects.exists()


def test_a_chat_shows_ratings_without_extra_queries(
    run, person, chat, django_assert_max_num_queries
):
    last = chat.messages.last()
    for at in range(20):
        row = Run.objects.create(
            user=person, topic=chat.topic, query="x", answer="y", status="completed"
        )
        last = chat.messages.create(
            author=person, run=row, text="x", client_id=f"m{at}", parent=last
        )
        Rating.objects.create(run=row, user=person, is_good=True)
        Review.objects.create(run=row, correction="z", corrected_at=row.started_at)

    client = as_user(person)

    with django_assert_max_num_queries(30):
        page = client.get(f"/chat/{chat.pk}/").text

    assert page.count('data-rated="good"') == 20
    assert page.count('class="signed"') == 20


async def test_a_rating_appears_in_another_tab(run, person, chat):
    client = await as_async_user(person)
    async with tab(person, f"/ws/chat/{chat.pk}/") as page:
        await frames_until(page, "composer-state")
        await client.post(f"/traces/{run.pk}/rating/", {"rating": "good"})
        [*_, frame] = await frames_until(page, 'data-rated="good"')

    assert f'id="rating-{run.pk}"' in frame
    assert "<section" not in frame


# Guardrails


@pytest.fixture
def hit(run):
    pattern = GuardrailPattern.objects.create(name="Sums", pattern="6")
    about = {"agent_name": "helper", "stage": "input", "action": "warn", "at": run.started_at}
    return run.hits.create(pattern=pattern, step=1, **about)


def test_a_guardrail_hit_is_rated_where_it_is_shown(run, hit, reviewer):
    client, path = as_user(reviewer), f"/traces/{run.pk}/hits/{hit.pk}/"
    page = client.get(f"/traces/{run.pk}/steps/1/review/", headers=HTMX).text
    assert path in page
    assert "Was the hit for “Sums” right?" in page

    said = client.post(path, {"word": "wrong", "step": "1"}, headers=HTMX).text
    assert 'value="wrong" aria-pressed="true"' in said
    assert not GuardrailHit.objects.get().verdict.is_right
    client.post(path, {"word": "open", "step": "1"})
    assert not GuardrailVerdict.objects.exists()


def test_a_step_without_a_guardrail_hit_has_no_rating_form(run, hit, reviewer):
    run.steps.create(number=2, kind="tool", status="done", started_at=run.started_at)

    page = as_user(reviewer).get(f"/traces/{run.pk}/steps/2/review/", headers=HTMX)

    assert "/hits/" not in page.text


def test_a_hit_of_another_run_returns_404(run, hit, reviewer):
    other = Run.objects.create(user=run.user, agent_name="helper", topic="t", query="q")

    client = as_user(reviewer)

    assert (
        client.post(f"/traces/{other.pk}/hits/{hit.pk}/", {"word": "right"}).status_code == 404
    )
    assert client.post(f"/traces/{run.pk}/hits/{hit.pk}/", {"word": "x"}).status_code == 422
    assert not GuardrailVerdict.objects.exists()


# Notes and labels


def test_only_the_author_can_change_and_delete_a_note(run, reviewer, other):
    mine = feedback.add_note(reviewer, run, "Off by one.")
    path = f"/traces/{run.pk}/notes/{mine.pk}/"

    assert as_user(other).post(path, {"text": "No."}).status_code == 404
    assert as_user(other).post(path, {"delete": "1"}).status_code == 404
    as_user(reviewer).post(path, {"text": "Off by one!"})
    note = Note.objects.get()
    assert (note.text, note.edited_at is None) == ("Off by one!", False)

    as_user(reviewer).post(path, {"delete": "1"})
    assert not Note.objects.exists()


def test_a_note_on_a_step_is_shown_there_and_on_the_run(run, reviewer):
    client = as_user(reviewer)

    client.post(f"/traces/{run.pk}/notes/", {"text": "A detour.", "step": "1"})
    step = client.get(f"/traces/{run.pk}/steps/1/review/", headers=HTMX).text

    assert Note.objects.get().step == 1
    assert "A detour." in step
    assert "<html" not in step
    assert "<html" in client.get(f"/traces/{run.pk}/steps/1/review/").text
    assert client.get(f"/traces/{run.pk}/steps/2/review/").status_code == 404


def test_an_empty_note_or_unknown_step_is_rejected_with_a_message(run, reviewer):
    client, path = as_user(reviewer), f"/traces/{run.pk}/notes/"

    nothing = client.post(path, {"text": " \0 "}, headers=HTMX).text
    nowhere = client.post(path, {"text": "x", "step": "7"}, headers=HTMX).text

    assert "Enter some text first." in nothing
    assert "This step doesn&#x27;t exist." in nowhere
    assert not Note.objects.exists()


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("Wrong  SUM", "wrong sum"),
        ("ＷＲＯＮＧ", "wrong"),
        ("ｶﾅ 計算", "カナ 計算"),
    ],
)
def test_labels_are_normalized(typed, kept, run, reviewer):
    client, path = as_user(reviewer), f"/traces/{run.pk}/labels/"

    for name in (typed, kept):
        client.post(path, {"label": name})

    assert [label.name for label in Label.objects.all()] == [kept]
    client.post(path, {"remove": typed})
    assert not Label.objects.exists()


def test_a_label_that_is_too_long_is_rejected_with_a_message(run, reviewer):
    answer = as_user(reviewer).post(
        f"/traces/{run.pk}/labels/", {"label": "㍿" * 20}, headers=HTMX
    )

    assert "Labels can be up to 64 characters" in answer.text
    assert not Label.objects.exists()


# The queue


def request_by(user):
    """Return a request by this user."""
    request = RequestFactory().get("/review/")
    request.user, request.session = user, {}
    return request


def flag_several(person, count):
    runs = [
        Run.objects.create(user=person, topic=f"t{at}", query=f"q{at}", status="completed")
        for at in range(count)
    ]
    for run in runs:
        feedback.flag(person, run, "Look.")
    return runs


def test_the_longest_waiting_runs_come_first(reviewer, person):
    flag_several(person, 3)
    first = Review.objects.order_by("pk").first()
    feedback.decide(reviewer, first.run, "wrong", "")

    names = ("open", "decided", "mine")
    shown = {name: run_page.queue_page(request_by(reviewer), name)[0] for name in names}

    assert [case.question for case in shown["open"]] == ["q1", "q2"]
    assert [case.question for case in shown["decided"]] == ["q0"]
    assert shown["mine"] == []


def test_queue_pages_continue_correctly_after_decisions(reviewer, person, monkeypatch):
    monkeypatch.setattr(run_page, "PAGE_SIZE", 2)
    flag_several(person, 5)
    page, more = run_page.queue_page(request_by(reviewer), "open")
    for case in page:
        feedback.decide(reviewer, case.run, "correct", "")

    following, last = run_page.queue_page(request_by(reviewer), "open", more)

    assert [case.question for case in following] == ["q2", "q3"]
    assert [
        case.question for case in run_page.queue_page(request_by(reviewer), "open", last)[0]
    ] == ["q4"]


def test_the_queue_needs_few_queries(reviewer, person, agent, django_assert_max_num_queries):
    for run in flag_several(person, 20):
        feedback.add_note(reviewer, run, "Hm.")
        feedback.add_label(reviewer, run, "sum")
        Rating.objects.create(run=run, user=person, is_good=False)

    client = as_user(reviewer)

    with django_assert_max_num_queries(31):
        page = client.get("/review/").text

    assert page.count('class="case"') == 20


def test_the_queue_masks_other_users_runs_and_audits_views(run, reviewer, person):
    private = "ada@example.com"
    Run.objects.update(query=f"Write to {private}", answer=f"Sent to {private}.")
    feedback.rate(person, run, feedback.RatingInput(is_good=False, comment=f"Not {private}!"))
    feedback.flag(person, run, f"It should not tell {private}.")
    feedback.correct(person, run, f"Ask {private} first.", "")

    for _ in range(2):
        page = as_user(reviewer).get("/review/?show=decided").text

    assert "Write to " in page
    assert private not in page
    assert AuditEntry.objects.by(reviewer).filter(action="run.viewed").count() == 1
    panel = as_user(reviewer).post(f"/traces/{run.pk}/labels/", {"label": "x"}, headers=HTMX)
    assert private not in panel.text


def test_a_decision_counts_once_and_the_second_reviewer_is_told(run, reviewer, other):
    feedback.flag(reviewer, run, "Look.")
    path, typed = f"/traces/{run.pk}/verdict/", {"verdict": "partly", "seen": ""}

    as_user(reviewer).post(path, {"verdict": "wrong", "seen": ""})
    late = as_user(other).post(path, typed, headers=HTMX).text

    assert "rei set the verdict to “wrong”." in late
    assert Review.objects.get().decided_by == reviewer
    seen = Review.objects.get().stamp
    assert f'value="{seen}"' in late
    as_user(other).post(path, typed | {"seen": seen})
    assert (Review.objects.get().verdict, Review.objects.get().decided_by) == ("partly", other)


def test_only_one_of_many_concurrent_decisions_counts(run, reviewer):
    def decide(verdict):
        try:
            feedback.decide(reviewer, run, verdict, "")
        except feedback.FeedbackRejected:
            return ""
        finally:
            connection.close()
        return verdict

    with ThreadPoolExecutor(4) as threads:
        taken = list(threads.map(decide, [*Review.Verdict] * 2))

    assert [verdict for verdict in taken if verdict] == [Review.objects.get().verdict]
    assert AuditEntry.objects.filter(action="review.verdict").count() == 1


@pytest.mark.parametrize(
    "query", one_in(4, ["after=" + "9" * 30, "after=-1", "show=%00", "after=%E2%91%A1"])
)
def test_invalid_queue_parameters_are_ignored(query, run, reviewer):
    feedback.flag(reviewer, run, "Look.")

    assert "6 * 7" in as_user(reviewer).get(f"/review/?{query}").text


async def test_a_late_correction_keeps_its_text(run, reviewer, other):
    await sync_to_async(feedback.correct)(reviewer, run, "It is 42.", "")
    client = await as_async_user(other)

    late = await client.post(
        f"/traces/{run.pk}/correction/", {"correction": "Forty-two.", "seen": ""}
    )

    assert late.status_code == 422
    assert "rei set the verdict to" in late.text
    assert "Forty-two." in late.text
    assert (await Review.objects.aget()).correction == "It is 42."


def test_a_run_can_be_assigned_to_a_reviewer(run, reviewer, other, stranger):
    feedback.flag(reviewer, run, "Look.")
    client, path = as_user(reviewer), f"/traces/{run.pk}/assignee/"

    client.post(path, {"to": "kai"})
    assert Review.objects.get().assignee == other
    client.post(path, {"me": "1", "to": "kai"})
    assert Review.objects.get().assignee == reviewer
    refused = client.post(path, {"to": "eve"}, headers=HTMX).text
    assert "This user can&#x27;t review this run." in refused

    ReviewScope.objects.create(user=other).agents.add(Agent.objects.create(name="else"))
    refused = client.post(path, {"to": "kai"}, headers=HTMX).text
    assert "This user can&#x27;t review this run." in refused
    client.post(path, {"to": ""})
    assert Review.objects.get().assignee is None


def test_flagging_a_decided_run_reopens_it_with_its_history(run, reviewer, person):
    feedback.flag(person, run, "It is 42.")
    feedback.decide(reviewer, run, "correct", "")

    as_user(person).post(f"/traces/{run.pk}/flag/", {"why": "Really, it is not."})

    review = Review.objects.get()
    assert (review.is_open, review.why) == (True, "It is 42.\nReally, it is not.")
    assert AuditEntry.objects.filter(detail__verdict="correct").exists()


def test_an_unflagged_run_can_be_reviewed(run, reviewer):
    feedback.decide(reviewer, run, "correct", "")
    shown = as_user(reviewer).get("/review/?show=decided").text

    assert Review.objects.get().flagged_by is None
    assert "Flagged" not in shown
    assert "rei" in shown


def test_only_reviewers_see_the_queue_count(run, reviewer, person):
    feedback.flag(person, run, "Look.")

    theirs = as_user(reviewer).get("/review/open/").text

    assert 'class="badge">1<' in theirs
    assert 'class="to-reviews"' in as_user(reviewer).get("/traces/").text
    assert 'class="to-reviews"' not in as_user(person).get("/traces/").text
    assert as_user(person).get("/review/open/").status_code == 404
    assert as_user(person).get("/review/").status_code == 404
    ReviewScope.objects.create(user=reviewer).agents.add(Agent.objects.create(name="else"))
    assert 'class="badge"></span>' in as_user(reviewer).get("/review/open/").text


def test_the_chat_links_reviewers_to_the_queue(run, reviewer, person):
    feedback.flag(person, run, "Look.")

    page = as_user(reviewer).get("/").text

    link = re.search(r'<a class="to-reviews" href="/review/".*?</a>', page, re.DOTALL)[0]
    assert "#i-review" in link
    assert 'class="badge">1<' in link
    assert 'class="to-reviews"' not in as_user(person).get("/").text


OF_REVIEWERS = ["notes/", "labels/", "assignee/", "verdict/", "correction/", "example/"]


@pytest.mark.parametrize("route", one_in(4, OF_REVIEWERS))
async def test_the_owner_cannot_review_the_run(route, run, person):
    client = await as_async_user(person)
    said = {"text": "x", "label": "x", "verdict": "correct", "correction": "x", "name": "x"}

    assert (await client.post(f"/traces/{run.pk}/{route}", said)).status_code == 404
    assert not await Review.objects.aexists()
    assert not await Note.objects.aexists()


@pytest.mark.parametrize("route", one_in(4, [*OF_REVIEWERS, "flag/", "rating/"]))
async def test_a_run_out_of_scope_returns_404(route, run, reviewer):
    scope = await ReviewScope.objects.acreate(user=reviewer)
    await scope.agents.aadd(await Agent.objects.acreate(name="else"))
    client = await as_async_user(reviewer)

    assert (await client.post(f"/traces/{run.pk}/{route}", {"text": "x"})).status_code == 404


NASTY = {"\0": "NUL", "\ud800": "half", "x" * 100_001: "long", "<script>alert(": "HTML"}


@pytest.mark.both_databases
@pytest.mark.parametrize("text", NASTY, ids=NASTY.values())
@pytest.mark.parametrize("remove", one_in(2, [{}, {"remove": "x"}]))
async def test_any_input_is_saved_or_has_an_error_message(text, remove, run, reviewer):
    client = await as_async_user(reviewer)
    fields = ["text", "label", "why", "correction", "name", "expected", "to", "reason"]
    said = dict.fromkeys([*fields, *remove], text) | {"verdict": "wrong", "seen": ""}
    body = urlencode(said, errors="surrogatepass")

    for route in [*OF_REVIEWERS, "flag/", "rating/"]:
        answer = await client.post(
            f"/traces/{run.pk}/{route}",
            body,
            content_type="application/x-www-form-urlencoded",
            headers=HTMX,
        )
        assert answer.status_code in {200, 404}, route
        assert "<script>alert" not in answer.text


# Corrections in the chat


async def test_a_correction_appears_live_in_the_chat_and_stays(run, reviewer, person, chat):
    async with tab(person, f"/ws/chat/{chat.pk}/") as page:
        await frames_until(page, "composer-state")
        await sync_to_async(feedback.correct)(reviewer, run, "It is **42**. <b>x</b>", "")
        [*_, frame] = await frames_until(page, "Corrected by rei")

    assert "<strong>42</strong>" in frame
    assert "<b>x" not in frame
    reloaded = (await (await as_async_user(person)).get(f"/chat/{chat.pk}/")).text
    assert frame[frame.index('<div id="correction') :].strip() in reloaded
    assert ">41</strong>" in reloaded
    assert "<strong>42</strong>" in reloaded


async def test_a_reconnected_page_gets_the_correction(run, reviewer, person, chat):
    await sync_to_async(feedback.correct)(reviewer, run, "It is 42.", "")
    last = await chat.messages.acreate(
        author=person,
        client_id="b",
        parent=await chat.messages.alast(),
        run=await Run.objects.acreate(user=person, topic=chat.topic, status="completed"),
    )

    async with tab(person, f"/ws/chat/{chat.pk}/", query=f"after={last.pk}".encode()) as page:
        frames = await frames_until(page, "composer-state")

    assert "Corrected by rei" in "".join(frames)


async def test_a_correction_can_be_removed(run, reviewer, person, chat):
    review = await sync_to_async(feedback.correct)(reviewer, run, "It is 42.", "")

    client = await as_async_user(reviewer)
    said = {"correction": "It is 42.", "withdraw": "1", "seen": review.stamp}
    await client.post(f"/traces/{run.pk}/correction/", said)

    page = (await (await as_async_user(person)).get(f"/chat/{chat.pk}/")).text
    assert "Corrected by" not in page
    assert (await Review.objects.aget()).verdict == "wrong"


async def test_pages_of_other_runs_get_no_correction(run, reviewer, chat, person):
    mine = await Run.objects.acreate(user=person, topic=chat.topic, query="?", status="failed")
    async with tab(person, f"/ws/runs/{mine.pk}/") as page:
        await frames_until(page, f"run-{mine.pk}")
        await sync_to_async(feedback.correct)(reviewer, run, "It is 42.", "")

        assert await page.receive_nothing(0.3)


async def test_an_unchanged_answer_is_not_a_correction(run, reviewer):
    with pytest.raises(feedback.FeedbackRejected, match="the same as the original answer"):
        await sync_to_async(feedback.correct)(reviewer, run, " It is **41**.\r\n", "")


def test_the_masked_answer_is_not_a_correction(run, reviewer):
    run.answer = f"Ask {MAIL}."

    with pytest.raises(feedback.FeedbackRejected, match="the user would see the masks"):
        feedback.correct(reviewer, run, "Ask ‹email›.", "")
    feedback.correct(reviewer, run, "Ask her.", "")


def written_fields(page):
    """Return the initial values of answer fields."""
    return re.findall(r'name="(?:correction|expected)"[^>]*>([^<]*)<', page)


def test_the_correction_form_does_not_start_with_a_masked_answer(run, reviewer, auditor):
    feedback.flag(reviewer, run, "Look.")
    plain = as_user(reviewer).get("/review/").text
    Run.objects.update(answer=f"Ask {MAIL}.")
    page = as_user(reviewer).get("/review/").text
    theirs = as_user(auditor)
    masked = theirs.get("/review/").text
    theirs.post(f"/traces/{run.pk}/unmask/", {"reason": "A complaint."})
    unmasked = theirs.get("/review/").text

    assert written_fields(plain) == ["It is **41**."] * 2
    assert written_fields(page) == written_fields(masked) == ["", ""]
    assert page.count("A user with access to personal data can unmask it first") == 2
    assert masked.count(f'<a href="/traces/{run.pk}/">unmask the run</a>') == 2
    assert written_fields(unmasked) == [f"Ask {MAIL}."] * 2
    assert ("is masked." in page, "is masked." in unmasked) == (True, False)


def test_the_correction_form_does_not_start_with_a_masked_correction(run, reviewer, other):
    feedback.correct(other, run, f"Ask {MAIL}.", "")

    page = as_user(reviewer).get("/review/?show=decided").text

    assert written_fields(page) == ["", ""]
    assert "Ask ‹email›." in page


def test_a_note_is_masked_except_for_its_author(run, reviewer, other):
    feedback.add_note(reviewer, run, f"I asked {MAIL}.")
    feedback.flag(reviewer, run, "Look.")

    pages = [as_user(user).get("/review/").text for user in (reviewer, other)]
    mine, theirs = pages

    assert mine.count(f"I asked {MAIL}.") == 2
    assert MAIL not in theirs
    assert "I asked ‹email›." in theirs


def test_reviews_are_audited(run, reviewer):
    feedback.flag(reviewer, run, "Look.")
    feedback.decide(reviewer, run, "unsafe", "")

    entry = AuditEntry.objects.first()

    assert (entry.actor, entry.subject) == (reviewer, f"run:{run.pk}")
    assert (entry.action, entry.detail["verdict"]) == ("review.verdict", "unsafe")


# Examples


async def test_the_corrected_answer_is_what_an_example_expects(run, reviewer):
    await sync_to_async(feedback.correct)(reviewer, run, "It is 42.", "")
    client = await as_async_user(reviewer)

    page = (await client.get("/review/?show=decided")).text
    said = {"name": "Sum", "expected": "It is 42."}
    await client.post(f"/traces/{run.pk}/example/", said)

    assert 'name="expected" rows="4" maxlength="100000">It is 42.<' in page
    example = await Example.objects.aget()
    assert (example.name, example.expected) == ("Sum", "It is 42.")
    assert (example.question, example.saved_by_id) == ("6 * 7", reviewer.pk)


def test_a_duplicate_example_name_is_rejected_and_keeps_the_input(run, reviewer):
    Example.objects.create(name="Sum")
    said = {"name": "Sum", "expected": "Forty-two"}

    answer = as_user(reviewer).post(f"/traces/{run.pk}/example/", said, headers=HTMX)

    assert "An example with this name already exists." in answer.text
    assert "Forty-two" in answer.text
    assert Example.objects.count() == 1


@pytest.mark.parametrize("headers", [HTMX, {}])
def test_the_owner_does_not_see_step_notes(headers, run, reviewer, person):
    feedback.add_note(reviewer, run, "Between us: a rough customer.", step=1)
    too_long = "x" * (feedback.MAX_TEXT_CHARS + 1)

    for why in ("Look.", too_long):
        said = {"why": why, "step": "1"}
        answer = as_user(person).post(f"/traces/{run.pk}/flag/", said, headers=headers)
        assert b"rough customer" not in answer.content


def test_the_audit_log_has_the_length_of_text_but_not_the_text(run, reviewer, person):
    feedback.flag(person, run, "Call me: 090-1234-5678.")
    review = feedback.correct(reviewer, run, "It is 42.", "")
    feedback.correct(reviewer, run, "", review.stamp)

    kept = AuditEntry.objects.filter(action__startswith="review.").order_by("pk")
    assert [entry.detail for entry in kept] == [
        {"characters": 23, "before": ""},
        {"characters": 9, "before": 0},
        {"characters": 0, "before": 9},
    ]


def test_the_total_length_of_reasons_is_limited(run, person):
    feedback.flag(person, run, "x" * (feedback.MAX_TEXT_CHARS - 10))

    answer = as_user(person).post(f"/traces/{run.pk}/flag/", {"why": "y" * 20}, headers=HTMX)

    assert "All reasons together can be up to 10000" in answer.text
    assert len(Review.objects.get().why) == feedback.MAX_TEXT_CHARS - 10


@pytest.mark.parametrize("said", [{"correction": "  "}, {"withdraw": "1"}])
def test_an_uncorrected_answer_has_no_correction_to_remove(said, run, reviewer):
    answer = as_user(reviewer).post(f"/traces/{run.pk}/correction/", said, headers=HTMX)

    assert "Enter the corrected answer first." in answer.text
    assert not Review.objects.exists()
    assert not AuditEntry.objects.filter(action="review.correction").exists()


@pytest.mark.parametrize(
    ("route", "act", "said"),
    one_in(
        4,
        [
            ("rating", "rate", {"rating": "good"}),
            ("rating", "rate", {"rating": "flag"}),
            ("notes", "add_note", {"text": "Look."}),
            ("flag", "flag", {"why": "Look."}),
        ],
    ),
)
def test_reviewing_a_deleted_run_returns_404(route, act, said, run, reviewer, monkeypatch):
    Run.objects.update(user=reviewer)
    real = getattr(feedback, act)

    def overtaken(user, run, *about):
        Run.objects.filter(pk=run.pk).delete()
        return real(user, run, *about)

    monkeypatch.setattr(feedback, act, overtaken)

    answer = as_user(reviewer).post(f"/traces/{run.pk}/{route}/", said, headers=HTMX)

    assert answer.status_code == 404


def test_showing_a_deleted_run_returns_404(run, reviewer, monkeypatch):
    monkeypatch.setattr(feedback, "add_note", lambda user, run, *about: run.delete())

    answer = as_user(reviewer).post(f"/traces/{run.pk}/notes/", {"text": "x"}, headers=HTMX)

    assert answer.status_code == 404
