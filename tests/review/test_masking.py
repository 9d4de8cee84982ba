"""Readers of another user's run see no personal data, by any route."""

import json

import pytest
from asgiref.sync import sync_to_async

from agents import runs
from agents.access import masking
from agents.access.masking import Masker, mask_value
from agents.engine.events import Event, EventType
from agents.engine.testing import Says
from agents.models import AgentStep, Approval, AuditEntry, GuardrailPattern, Run, RunEvent
from agents.review.filters.filter_language import parse
from agents.review.models import Rating, Review
from agents.review.run_list import listing
from agents.runs import close_codes, pubsub
from agents.web.consumers import live
from agents.web.presentation.live_run import LiveRunView
from tests.conftest import (
    ORIGIN,
    as_async_user,
    as_user,
    frames_until,
    run_question,
    select,
    tab,
)
from tests.review.conftest import MAIL, PERSONAL, PHONE, may
from tests.sampling import one_in

pytestmark = pytest.mark.django_db(transaction=True)


def has_no_personal_data(text):
    return not any(secret in text or secret[:9] in text for secret in PERSONAL)


def test_every_text_of_a_row_is_masked_and_the_row_itself_is_not(personal_run):
    rows = [personal_run, *AgentStep.objects.all(), *Approval.objects.all()]

    for row in rows:
        shown = masking.mask_row(row)
        assert has_no_personal_data(str(vars(shown))), shown
        row.refresh_from_db()
        assert not has_no_personal_data(str(vars(row)))


def test_masking_does_not_load_deferred_columns(personal_run, django_assert_num_queries):
    row = Run.objects.only("query").get()

    with django_assert_num_queries(0):
        assert masking.mask_row(row).query == "Who is ‹email›?"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"phone": "0312345678"}, {"phone": "‹phone›"}),
        ({"phone": 312345678}, {"phone": "‹phone›"}),
        ({"order": 312345678}, {"order": 312345678}),
        ({"customer_id": 123456789018}, {"customer_id": 123456789018}),
        ({"number": 123456789018}, {"number": "‹My Number›"}),
        ({"password": "hunter2"}, {"password": "‹key›"}),
        ([{"a": [MAIL, 1, None, True, 1.5]}], [{"a": ["‹email›", 1, None, True, 1.5]}]),
        ({MAIL: 1}, {"‹email›": 1}),
        ({MAIL: 1, "bob@example.com": 2}, {"‹email›": 1, "‹email› 1": 2}),
        ({"電話": ["0312345678"]}, {"電話": ["‹phone›"]}),
        ("half \ud800 and \0", "half \ud800 and \0"),
    ],
)
def test_field_names_help_to_detect_personal_data(value, shown):
    assert mask_value(value) == shown


def test_a_reviewer_reads_the_page_masked(personal_run, reviewer):
    page = as_user(reviewer).get(f"/traces/{personal_run.pk}/")
    [answer] = select(page, f"#answer-{personal_run.pk} p")

    assert has_no_personal_data(page.text)
    assert "Who is ‹email›?" in page.text
    assert answer.text() == "It is Ada, ‹phone›."


@pytest.mark.parametrize(
    "tab", one_in(4, ["result", "request", "delta", "guardrails", "cost", "raw"])
)
def test_step_details_are_masked(tab, personal_run, reviewer, person):
    AgentStep.objects.create(
        run=personal_run,
        number=2,
        kind="answer",
        agent_name="clerk",
        request={"messages": [{"role": "tool", "content": MAIL}], "kept": 1, "model": "m"},
        started_at=personal_run.started_at,
    )
    AgentStep.objects.create(
        run=personal_run,
        number=3,
        kind="guardrail",
        observation=f"{MAIL} is not to be told.",
        started_at=personal_run.started_at,
    )
    AgentStep.objects.filter(number=1).update(
        request={"messages": [{"role": "user", "content": f"I am {MAIL}"}], "kept": 0}
    )

    for number in (1, 2):
        place = f"/traces/{personal_run.pk}/steps/{number}/"
        assert has_no_personal_data(as_user(reviewer).get(f"{place}?tab={tab}").text)
    files = [as_user(reviewer).get(f"{place}{n}/") for n in ("result", "request", "raw")]
    assert all(has_no_personal_data(file.text) for file in files)
    assert "‹email›" in files[1].text


def test_truncated_text_contains_no_partial_address(personal_run, reviewer):
    said = f"{'x ' * 997}{MAIL} and more"
    AgentStep.objects.update(observation=said)

    page = as_user(reviewer).get(f"/traces/{personal_run.pk}/").text

    assert "ada@" not in page
    assert "x x x" in page


def test_users_read_their_own_runs_unmasked(personal_run, person):
    page = as_user(person).get(f"/traces/{personal_run.pk}/").text

    assert MAIL in page
    assert "‹" not in page
    assert not AuditEntry.objects.filter(action="run.viewed").exists()


def test_a_run_without_a_user_is_masked(personal_run, reviewer):
    Run.objects.update(user=None)

    assert has_no_personal_data(as_user(reviewer).get(f"/traces/{personal_run.pk}/").text)


def test_the_list_masks_other_users_questions(personal_run, reviewer, person):
    assert has_no_personal_data(as_user(reviewer).get("/traces/").text)
    assert MAIL in as_user(person).get("/traces/").text


async def test_a_reviewers_event_stream_is_masked(personal_run, reviewer):
    client = await as_async_user(reviewer)

    for after in (0, 1):
        answer = await client.get(f"/api/runs/{personal_run.pk}/events/?after={after}")
        text = "".join([part.decode() async for part in answer.streaming_content])

        assert has_no_personal_data(text)
        assert text.count("\nevent: ") == 4 - after
        assert "‹phone›" in text
        assert "mple.com" not in text


async def test_a_socket_of_a_reviewer_is_masked(personal_run, reviewer):
    async with tab(reviewer, f"/ws/runs/{personal_run.pk}/") as page:
        frames = await frames_until(page, "‹phone›")

    assert has_no_personal_data("".join(frames))


PAGES = [
    "/traces/",
    "/traces/{run}/",
    "/traces/{run}/steps/",
    "/traces/{run}/compare/",
    "/traces/{run}/compare/{other}/",
    "/traces/{run}/replay/",
    "/traces/{run}/replay/?at=4",
    "/traces/{run}/replay/scene/",
    "/traces/{run}/replay/scene/?after=1",
    "/traces/{run}/again/1/",
    "/traces/{run}/share/",
    "/traces/{run}/steps/1/review/",
    "/review/",
]


@pytest.mark.parametrize("page", one_in(4, PAGES))
def test_no_page_shows_personal_data_to_a_reviewer(page, personal_run, reviewer, person):
    may(reviewer, "rerun_runs")
    other = Run.objects.create(
        topic="b", query=personal_run.query, answer=f"No {MAIL}", status="completed"
    )
    Rating.objects.create(run=personal_run, user=person, is_good=False, comment=f"By {MAIL}")
    Review.objects.create(run=personal_run, why=f"Says {person}: {PHONE}")

    answer = as_user(reviewer).get(page.format(run=personal_run.pk, other=other.pk))

    assert answer.status_code == 200
    assert has_no_personal_data(answer.text)
    assert "ada@" not in answer.text


def test_a_rerun_of_another_users_run_is_masked(personal_run, reviewer, auditor):
    for user in (reviewer, auditor):
        again = Run.objects.create(
            user=user,
            topic="b",
            query=personal_run.query,
            origin=personal_run,
            origin_step=1,
            status="stopped",
        )
        client = as_user(user)
        assert has_no_personal_data(client.get(f"/traces/{again.pk}/").text)
        assert has_no_personal_data(client.get("/traces/").text)

    client.post(f"/traces/{again.pk}/unmask/", {"reason": "A complaint"})
    assert MAIL in client.get(f"/traces/{again.pk}/").text


# Words as they come


LONG = f"I have written to {MAIL} about this, and she will call you back on {PHONE} " + (
    "as soon as the shop is open again and the parcel has come back. " * 4
)


def watch_frames(run, *words):
    """Return the frames of a watching page, event by event."""
    watched = LiveRunView(run.pk, "trace", may_decide=False, masker=Masker())
    frames = [watched.snapshot()]
    for seq, (type, content) in enumerate(words, start=2):
        data = {"content": content, "step": 1}
        RunEvent.objects.create(
            run=run, seq=seq, type=type, agent="a", time=run.started_at, data=data
        )
        event = Event(type=type, data=data, agent="a", seq=seq).to_dict()
        frames.append(watched.delta_frames([event]))
    return watched, frames


@pytest.fixture
def live_run(person):
    run = Run.objects.create(user=person, topic="chat.1", query="Hi", agent_name="a")
    AgentStep.objects.create(
        run=run, number=1, kind="thought", first_seq=1, started_at=run.started_at
    )
    first = {"step": 1, "turn": 1, "kind": "thought", "request": {}}
    RunEvent.objects.create(
        run=run, seq=1, type="step_started", agent="a", time=run.started_at, data=first
    )
    return run


@pytest.mark.parametrize("size", one_in(3, [1, 7, 40]))
@pytest.mark.parametrize("type", [EventType.DELTA, EventType.THOUGHT_DELTA])
def test_streamed_text_contains_no_partial_address(live_run, type, size):
    words = [(type, LONG[at : at + size]) for at in range(0, len(LONG), size)]

    watched, frames = watch_frames(live_run, *words)

    assert has_no_personal_data("".join(frames))
    assert "ada@" not in "".join(frames)
    assert "‹email›" in "".join(frames)
    assert "‹phone›" in watched.snapshot()


def test_a_reviewers_live_and_reloaded_page_are_equal(live_run):
    words = [(EventType.DELTA, LONG[at : at + 9]) for at in range(0, len(LONG), 9)]
    watched, _ = watch_frames(live_run, *words)
    as_watched = watched.markdown.tail

    watched.snapshot()

    assert watched.markdown.tail == as_watched
    assert "‹email›" in as_watched


@pytest.mark.usefixtures("agent", "run_executor")
async def test_a_reviewer_watches_a_run_to_its_end_masked(person, reviewer, scripted):
    scripted(Says(thought=LONG, answer=LONG))
    run = await sync_to_async(runs.prepare)(query=f"Ask {MAIL}", topic="chat.1", user=person)
    async with tab(reviewer, f"/ws/runs/{run.pk}/") as page:
        frames = await frames_until(page, f"run-{run.pk}")
        runs.launch(run)
        frames += await frames_until(page, 'data-status="completed"')

    assert has_no_personal_data("".join(frames))
    assert "‹email› about this" in frames[-1]


# Rules


@pytest.mark.usefixtures("agent", "run_executor")
async def test_only_reviewers_read_which_rule_blocked_a_message(person, reviewer, scripted):
    rule = await GuardrailPattern.objects.acreate(name="Project Falcon", pattern="falcon")
    run = await run_question("Tell me about falcon", user=person)

    async def read(user):
        client = await as_async_user(user)
        places = ("", "steps/1/", "steps/1/?tab=raw", "steps/1/?tab=request", "steps/1/raw/")
        pages = [await client.get(f"/traces/{run.pk}/{place}") for place in places]
        file = await client.get(f"/traces/{run.pk}/export.json")
        content = b"".join([piece async for piece in file.streaming_content])
        return [*(page.text for page in pages), content.decode()]

    own = await read(person)
    reviewed = await read(reviewer)

    assert run.stopped_reason == "blocked"
    assert not any("Falcon" in text for text in own)
    assert sum("Falcon" in text for text in reviewed) >= 3
    assert await rule.hits.acount() == 1


# Unmasking


def test_unmasking_needs_permission_and_a_reason_and_is_audited(personal_run, auditor):
    client, page = as_user(auditor), f"/traces/{personal_run.pk}/"

    answer = client.post(f"{page}unmask/", {"reason": " A complaint\0 "})

    assert answer.headers["Location"] == page
    assert MAIL in client.get(page).text
    entry = AuditEntry.objects.get(action="run.unmasked")
    assert (entry.actor, entry.subject) == (auditor, f"run:{personal_run.pk}")
    assert entry.detail == {"reason": "A complaint"}


def test_unmasking_applies_to_one_run_in_one_browser_session(personal_run, auditor):
    other = Run.objects.create(topic="b", query=f"Another {MAIL}", status="completed")
    client, page = as_user(auditor), f"/traces/{personal_run.pk}/"
    client.post(f"{page}unmask/", {"reason": "A complaint"})

    assert MAIL not in client.get(f"/traces/{other.pk}/").text
    assert MAIL not in as_user(auditor).get(page).text
    client.post(f"{page}unmask/", {"again": ""})
    assert MAIL not in client.get(page).text


def test_without_a_reason_nothing_is_unmasked(personal_run, auditor):
    client, page = as_user(auditor), f"/traces/{personal_run.pk}/"

    answer = client.post(f"{page}unmask/", {"reason": " "})

    assert answer.status_code == 422
    assert "Enter a reason." in answer.text
    assert has_no_personal_data(client.get(page).text)


def test_a_reviewer_without_permission_cannot_unmask(personal_run, reviewer, person):
    for user in (reviewer, person):
        answer = as_user(user).post(f"/traces/{personal_run.pk}/unmask/", {"reason": "x"})
        assert answer.status_code == 404
    assert not AuditEntry.objects.filter(action="run.unmasked").exists()


def test_losing_the_permission_masks_the_run_again(personal_run, auditor):
    client, page = as_user(auditor), f"/traces/{personal_run.pk}/"
    client.post(f"{page}unmask/", {"reason": "A complaint"})

    auditor.user_permissions.remove(
        *auditor.user_permissions.filter(codename="see_personal_data")
    )

    assert has_no_personal_data(client.get(page).text)


async def test_a_socket_is_closed_once_it_must_be_masked(personal_run, auditor, monkeypatch):
    monkeypatch.setattr(live, "RECHECK_SECONDS", 0)
    client, pk = await sync_to_async(as_user)(auditor), personal_run.pk
    await sync_to_async(client.post)(f"/traces/{pk}/unmask/", {"reason": "A complaint"})
    cookie = (b"cookie", f"sessionid={client.cookies['sessionid'].value}".encode())

    async with tab(auditor, f"/ws/runs/{pk}/", headers=(ORIGIN, cookie)) as page:
        await frames_until(page, MAIL)
        await sync_to_async(client.post)(f"/traces/{pk}/unmask/", {"again": ""})
        await pubsub.publish(personal_run.topic, "message.added", message=1, run=1)

        assert (await page.receive_output(10))["code"] == close_codes.NOT_FOUND


def test_masked_json_is_valid_json(personal_run):
    shown = masking.mask_row(AgentStep.objects.get())

    assert json.loads(shown.observation) == {"phone": "‹phone›"}
    assert shown.action_input == {"mail": "‹email›", "rows": [1, 2]}


@pytest.mark.parametrize("asked", one_in(4, [MAIL, "example", f"error:{MAIL}", "090-1234"]))
def test_masked_text_cannot_be_searched(asked, personal_run, reviewer, auditor, person):
    def found(user, q):
        answer = as_user(user).get("/traces/", {"q": q})
        return f'href="/traces/{personal_run.pk}/' in answer.text

    assert not found(reviewer, asked)
    assert found(reviewer, f"-{asked}")
    assert found(reviewer, "who")
    assert found(reviewer, "error:told")
    assert found(person, asked)
    assert not found(person, f"-{asked}")
    assert found(auditor, asked)
    assert not found(auditor, f"-{asked}")


def test_neighbours_and_pages_reveal_no_masked_text(personal_run, reviewer):
    pk = personal_run.pk
    others = [copy_run(personal_run, query="Who is it?", answer="Ada.") for _ in range(2)]

    assert listing.neighbours(reviewer, MAIL, others[0]) == (None, None)
    assert listing.neighbours(reviewer, f"-{MAIL}", others[0]) == (others[1], pk)
    assert listing.RunSearch(reviewer, parse(MAIL, is_reviewer=True)).above(0) is None


def copy_run(run, **columns):
    run = Run.objects.get(pk=run.pk)
    for name, value in {"pk": None, **columns}.items():
        setattr(run, name, value)
    run.save(force_insert=True)
    return run.pk


def test_a_text_search_in_other_users_runs_can_continue(personal_run, reviewer, monkeypatch):
    for _ in range(9):
        copy_run(personal_run)
    copy_run(personal_run, answer=f"As told: {MAIL[5:]}")
    monkeypatch.setattr(listing, "MAX_MASKED_MATCHES", 4)
    asked = parse("who", is_reviewer=True)

    pages = [listing.load_page(reviewer, asked, listing.Cursor())]
    while pages[-1].older:
        pages.append(listing.load_page(reviewer, asked, listing.Cursor(older=pages[-1].older)))

    assert [len(page.found) for page in pages] == [4, 4, 3]
    assert pages[0].unread
    assert not pages[-1].unread


def test_the_console_search_does_not_find_masked_text(personal_run, django_user_model):
    clerk = django_user_model.objects.create_user("clerk", is_staff=True)
    client = as_user(may(clerk, "view_run", "view_agentstep", "view_approval"))

    for page in ("run", "agentstep", "approval"):
        found = client.get(f"/admin/agents/{page}/", {"q": "example"}).context["cl"]
        assert found.result_count == 0


@pytest.fixture
def run_again(personal_run, auditor):
    """Another user's text, in a rerun that belongs to another user."""
    columns = {"user": auditor, "origin": personal_run, "origin_step": 1, "topic": "again"}
    again = Run.objects.get(pk=copy_run(personal_run, status="waiting", **columns))
    approval = personal_run.approvals.get()
    approval.pk, approval.run, approval.verdict = None, again, "waiting"
    approval.save()
    return again


def test_a_masked_request_of_a_rerun_cannot_be_decided(run_again, auditor):
    client = as_user(auditor)
    page = client.get("/approvals/").text

    assert has_no_personal_data(page)
    assert f'id="approval-{run_again.approvals.get().pk}"' in page
    assert 'name="verdict"' not in page
    assert "<textarea" not in page

    client.post(f"/traces/{run_again.pk}/unmask/", {"reason": "A complaint"})
    page = client.get("/approvals/").text

    assert MAIL in page
    assert 'name="verdict"' in page


def test_viewing_a_rerun_of_another_users_run_is_audited(run_again, auditor):
    client = as_user(auditor)
    client.get(f"/traces/{run_again.pk}/")
    client.get(f"/traces/{run_again.pk}/export.md")

    kept = AuditEntry.objects.filter(subject=f"run:{run_again.pk}")
    assert set(kept.values_list("action", flat=True)) == {"run.viewed", "run.exported"}


def test_the_console_masks_a_rerun_of_another_users_run(run_again, django_user_model):
    django_user_model.objects.filter(pk=run_again.user_id).update(is_staff=True)
    client = as_user(may(run_again.user, "view_run", "view_approval"))

    assert has_no_personal_data(client.get("/admin/agents/run/").text)
    page = client.get(f"/admin/agents/run/{run_again.pk}/change/")
    assert page.status_code == 200
    assert has_no_personal_data(page.text)
