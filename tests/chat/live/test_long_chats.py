"""Long answers, messages, chats and disconnections: pages and frames stay small."""

import asyncio
import base64
import re
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents import runs
from agents.engine.events import EventFactory, EventType
from agents.models import AgentStep, Run
from agents.review.models import Comment
from agents.runs import event_store, event_writer
from agents.web.consumers.frames import MAX_FRAME_BYTES
from agents.web.presentation import RunView, step_fragments, step_views
from agents.web.presentation.formats.formatting import MAX_QUESTION_CHARS
from agents.web.presentation.live_run import LiveRunView
from agents.web.presentation.markdown import MAX_ANSWER_CHARS
from chat import fragments
from chat.models import Member, Message
from tests.conftest import frames_until, tab

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]

PASTE = 'Order 4711, "express" & paid.\n' * 5_400
LONG = "A sentence of an answer that does not end. " * 45_000
NASTY = {
    "links": "[](a)" * 20_000,
    "code": "```python\n" + "1+" * 50_000 + "\n```",
    "quotes": (">" * 19 + "a\n\n") * 5_000,
    "tables": "|" * 100 + "\n" + "|-" * 99 + "|\n" + ("|" * 100 + "\n") * 900,
    "letters": "あ" * 100_000,
}
MAX_PAGE_BYTES = 500_000
MAX_QUERIES = 34


def create_messages(chat, count, *, text="6 * 7", answer="42", **step):
    """Create a finished conversation, each answer after a step."""
    now = timezone.now()
    about = {"topic": chat.topic, "user": chat.user, "agent_name": "helper", "model": "demo"}
    made = Run.objects.bulk_create(
        Run(**about, query=text, answer=answer, status="completed", ended_at=now)
        for _ in range(count)
    )
    request = {"messages": [{"role": "user", "content": text}], "kept": 0}
    about = {"turn": 1, "first_seq": 1, "kind": "thought", "status": "done", "request": request}
    about |= {"started_at": now - timedelta(seconds=1), "ended_at": now} | step
    steps = [AgentStep(run=run, number=1, agent_name="helper", **about) for run in made]
    AgentStep.objects.bulk_create(steps)
    said = Message.objects.bulk_create(
        Message(session=chat, author=chat.user, run=run, text=text, client_id=f"c{run.pk}")
        for run in made
    )
    before = Message.objects.filter(session=chat, pk__lt=said[0].pk).order_by("pk").last()
    for message in said:
        message.parent, before = before, message
    Message.objects.bulk_update(said, ["parent"])
    return said


def page_of(client, chat, query=""):
    client.force_login(chat.user)
    return client.get(f"/chat/{chat.pk}/{query}").text


def size(html):
    return len(html.encode())


@pytest.mark.thorough
@pytest.mark.parametrize(
    "about",
    [
        {"text": PASTE, "answer": LONG, "thought": LONG, "observation": PASTE, "kind": "tool"},
        pytest.param({"text": PASTE}, marks=pytest.mark.thorough),
        pytest.param({"answer": LONG}, marks=pytest.mark.thorough),
        *(pytest.param({"answer": bad}, marks=pytest.mark.thorough) for bad in NASTY.values()),
    ],
    ids=["everything", "pastes", "answers", *NASTY],
)
def test_a_page_of_thirty_long_messages_is_small_and_the_others_are_loaded(chat, client, about):
    messages = create_messages(chat, 30, **about)

    page, shown, at = page_of(client, chat), [], ""
    while True:
        assert size(page) <= MAX_PAGE_BYTES
        shown += re.findall(r'id="message-(\d+)"', page)[::-1]
        if (link := re.search(r'class="button earlier" href="(\?before=\d+)"', page)) is None:
            break
        assert link[1] != at
        page, at = page_of(client, chat, link[1]), link[1]

    assert [int(pk) for pk in reversed(shown)] == [message.pk for message in messages]


@pytest.mark.thorough
def test_a_chat_of_five_thousand_messages_opens_quickly(chat, client):
    create_messages(chat, 5_000)
    page_of(client, chat)

    with CaptureQueriesContext(connection) as asked:
        page = page_of(client, chat)

    assert page.count('class="message"') == 30
    assert len(asked) <= MAX_QUERIES
    assert size(page) <= MAX_PAGE_BYTES
    assert "Load earlier messages" in page


def test_a_long_answer_is_truncated_with_a_link_to_the_whole(chat, client):
    [message] = create_messages(chat, 1, answer=LONG)

    page = page_of(client, chat)
    whole = client.get(f"/traces/{message.run_id}/text/answer/")

    assert "of 1,935,000 characters." in page
    assert f'href="/traces/{message.run_id}/text/answer/"' in page
    assert f'data-copy-from="/traces/{message.run_id}/text/answer/"' in page
    assert whole.text == LONG
    assert whole["Content-Type"] == "text/plain; charset=utf-8"
    assert whole["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in whole["Content-Security-Policy"]


def test_a_long_message_is_truncated_with_a_link_to_the_whole(chat, client):
    [message] = create_messages(chat, 1, text=PASTE)

    page = page_of(client, chat)
    whole = client.get(f"/traces/{message.run_id}/text/question/")

    assert "Show all 162,000 characters" in page
    assert page.count("Order 4711") < 2 * MAX_QUESTION_CHARS / 30 + 10
    assert whole.text == PASTE


def test_unknown_texts_return_404(chat, client):
    [message] = create_messages(chat, 1)
    client.force_login(chat.user)

    assert client.get(f"/traces/{message.run_id}/text/history/").status_code == 404


async def test_a_page_that_missed_many_messages_gets_the_newest_in_small_frames(chat):
    before, *_ = await sync_to_async(create_messages)(chat, 1)
    missed = await sync_to_async(create_messages)(chat, 40, text=PASTE)
    query = f"after={before.pk}".encode()
    async with tab(chat.user, f"/ws/chat/{chat.pk}/", query=query) as page:
        frames = await frames_until(page, "composer-state")

    shown = [int(pk) for pk in re.findall(r'id="message-(\d+)"', "".join(frames))]
    assert max(map(size, frames)) <= MAX_FRAME_BYTES
    assert shown == [message.pk for message in missed][-len(shown) :]
    assert 5 < len(shown) < 40
    [gap] = re.findall(r'hx-get="([^"]+)"', "".join(frames).partition("<article")[0])
    assert gap.endswith(f"?before={shown[0]}&amp;after={before.pk}")


def test_loading_a_gap_ends_where_the_page_starts(chat, client):
    before, *missed = create_messages(chat, 12)
    client.force_login(chat.user)

    query = f"?before={missed[5].pk}&after={before.pk}"
    part = client.get(f"/chat/{chat.pk}/{query}", headers={"HX-Request": "true"})

    shown = re.findall(r'id="message-(\d+)"', part.text)
    assert [int(pk) for pk in shown] == [message.pk for message in missed[:5]]


async def test_a_page_that_shows_a_very_long_answer_can_be_connected(chat):
    [message] = await sync_to_async(create_messages)(chat, 1, answer=LONG)
    query = f"after={message.pk}".encode()
    async with tab(chat.user, f"/ws/chat/{chat.pk}/", query=query) as page:
        frames = await frames_until(page, "composer-state")

    assert max(map(size, frames)) <= MAX_FRAME_BYTES


async def test_an_answer_that_outgrows_its_page_is_sent_in_small_frames(chat, client):
    run = await sync_to_async(runs.prepare)(query="Talk", topic=chat.topic, user=chat.user)
    message = await chat.messages.acreate(author=chat.user, run=run, client_id="a")
    stamp, keep, pieces = EventFactory("helper"), sync_to_async(event_store.save), 400
    words = "A sentence of an answer. " * 10 + "\n\n"
    path, query = f"/ws/chat/{chat.pk}/", f"after={message.pk}".encode()
    async with tab(chat.user, path, query=query) as page:
        await frames_until(page, "composer-state")
        for _ in range(pieces):
            event = stamp(EventType.DELTA, content=words, step=1)
            await keep([(run.pk, event)])
            await event_writer.publish(run, [event])
        frames = await frames_until(page, f"{len(words) * pieces:,} so far.")

    sent = sum(map(size, frames))
    assert max(map(size, frames[-100:])) < 1_000
    assert sent < 5 * len(words) * pieces
    watched = LiveRunView(run.pk)
    now = await sync_to_async(watched.snapshot)()
    assert f"first {MAX_ANSWER_CHARS:,} characters; {len(words) * pieces:,} so far." in now
    assert size(now) < MAX_PAGE_BYTES


@pytest.mark.parametrize(
    "answer",
    [
        LONG,
        NASTY["code"],
        *(
            pytest.param(text, marks=pytest.mark.thorough, id=name)
            for name, text in NASTY.items()
            if name != "code"
        ),
    ],
    ids=["long", "code", *(name for name in NASTY if name != "code")],
)
def test_a_truncated_answer_is_the_same_live_and_reloaded(chat, client, answer):
    run = runs.prepare(query="Talk", topic=chat.topic, user=chat.user)
    chat.messages.create(author=chat.user, run=run, client_id="a", text="Talk")
    stamp, watched = EventFactory("helper"), LiveRunView(run.pk, viewer=chat.user.pk)
    watched.begin(run)
    watched.new_run = None
    for at in range(0, min(len(answer), 60_000), 1_000):
        event = stamp(EventType.DELTA, content=answer[at : at + 1_000], step=1)
        event_store.save([(run.pk, event)])
        frame = watched.delta_frames([event.to_dict()])
        assert size(frame) <= MAX_FRAME_BYTES
    if answer == LONG:  # of a heavy block, how far it was read depends on how it came
        assert _text(f"{watched.markdown.frozen_html}{watched.markdown.tail_html}") == _text(
            _answer_of(page_of(client, chat))
        )

    about = {"stopped_reason": "completed", "detail": "", "advice": "", "turns": 1}
    over = stamp(EventType.RUN_FINISHED, answer=answer, tool_calls=0, **about)
    event_store.save([(run.pk, over)])
    frame = watched.changes([over.to_dict()])

    assert size(frame) <= MAX_FRAME_BYTES
    assert _answer_of(frame) == _answer_of(page_of(client, chat))


def _text(html):
    return re.sub(r"<[^>]+>", "", html).split()


def _answer_of(html):
    frozen = html.partition('-frozen" class="frozen">')[2].partition("</div><div id=")[0]
    tail = html.partition('class="tail">')[2].partition("</div></div>")[0]
    return frozen + tail


def test_a_very_large_run_is_shown_without_details(chat, client):
    [message] = create_messages(chat, 1)
    now = timezone.now()
    AgentStep.objects.bulk_create(
        AgentStep(
            run=message.run,
            number=number,
            turn=number,
            first_seq=number,
            agent_name="helper",
            kind="tool",
            action="look",
            action_input={"word": PASTE[:4_000]},
            status="done",
            observation=PASTE,
            started_at=now,
            ended_at=now,
        )
        for number in range(2, 60)
    )

    page, frame = (
        page_of(client, chat),
        LiveRunView(message.run_id, viewer=chat.user.pk).snapshot(),
    )

    assert size(page) <= MAX_PAGE_BYTES
    assert "This run is too long to display in full here." in page
    assert page.count('class="step"') == 59
    assert frame.partition("<ol")[2].partition("</ol>")[0] in page


async def test_many_pages_connecting_at_once_share_a_rendering_and_continue_alone(chat):
    await sync_to_async(create_messages)(chat, 3)
    path = f"/ws/chat/{chat.pk}/"
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_first_frames(chat, path)) for _ in range(8)]

    assert len({"".join(task.result()) for task in tasks}) == 1


async def _first_frames(chat, path):
    async with tab(chat.user, path) as page:
        return await frames_until(page, "composer-state")


def test_queued_and_returned_messages_fit_in_a_frame(chat):
    paste = '"' * 200_000
    for place in range(1, 11):
        about = {"text": paste, "client_id": f"q{place}", "place": place}
        chat.messages.create(author=chat.user, **about)

    queue = fragments.SessionChrome(chat.user).changes(chat)
    returned = fragments.render_composer(chat, returned=paste)

    assert size(queue) <= MAX_FRAME_BYTES
    assert size(returned) <= MAX_FRAME_BYTES
    [given] = re.findall(r'data-returned-base64="([^"]+)"', returned)
    assert base64.b64decode(given).decode() == paste


def create_comments(chat, step, count=60):
    [message] = create_messages(chat, 1)
    Member.objects.create(session=chat, user=chat.user, topic=chat.topic, may_write=True)
    event_store.save(
        [(message.run_id, EventFactory("helper")(EventType.STATUS, kind="x", step=1))]
    )
    about = {"run": message.run, "author": chat.user, "step": step}
    words = [f"word {at}\n" + '"<&' * 3_000 for at in range(count)]
    Comment.objects.bulk_create(Comment(**about, text=each) for each in words)
    return message


@pytest.mark.parametrize("step", [0, 1])
def test_the_newest_of_many_comments_are_shown_with_a_link_to_all(chat, client, step):
    message = create_comments(chat, step)
    watched = LiveRunView(message.run_id, viewer=chat.user.pk, is_discussed=True)

    whole, said_of = watched.snapshot(), watched.comment_frames(step)
    page = page_of(client, chat)
    link = f"/traces/{message.run_id}/comments/{step}/"
    every = client.get(link).text

    assert size(whole) <= MAX_FRAME_BYTES
    assert size(said_of) <= MAX_FRAME_BYTES
    assert size(page) <= MAX_PAGE_BYTES
    for html in (whole, said_of, page):
        assert f'href="{link}"' in html
        assert "Show all 60 comments" in html
    assert "word 59" in said_of
    assert "word 0<" not in said_of
    assert every.count('<li id="comment-') == 60
    assert "word 0<" in every


def test_all_comments_are_for_members_only(chat, client, django_user_model):
    message = create_comments(chat, 0, count=1)
    client.force_login(django_user_model.objects.create(username="other", is_superuser=True))

    assert client.get(f"/traces/{message.run_id}/comments/0/").status_code == 404
    client.force_login(chat.user)
    assert client.get(f"/traces/{message.run_id}/comments/0/").status_code == 200
    assert client.get(f"/traces/{message.run_id}/comments/9/").status_code == 404
    assert client.get(f"/traces/{message.run_id}/comments/{10**30}/").status_code == 404


def test_the_row_of_a_long_plan_is_sent_without_details(chat):
    run = runs.prepare(query="Talk", topic=chat.topic, user=chat.user)
    chat.messages.create(author=chat.user, run=run, client_id="a", text="Talk")
    planned = [{"name": f"s{at}", "tool": "look", "arguments": {"a": PASTE}} for at in range(9)]
    about = {"turn": 1, "agent_name": "helper", "kind": "plan", "started_at": timezone.now()}
    facts = {"description": "Untitled plan", "steps": planned}
    AgentStep.objects.create(run=run, number=1, first_seq=1, action_input=facts, **about)
    [step] = step_views(RunView(run, until=1))

    row = step_fragments.step_row(step)

    assert size(row) <= MAX_FRAME_BYTES
    assert "Show details" in row
