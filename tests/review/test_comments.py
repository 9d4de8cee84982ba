"""Comments on steps in a shared chat."""

import pytest
from asgiref.sync import sync_to_async

from agents.models import HiddenTopic, Run
from agents.review.annotations import comments
from agents.review.models import Comment
from chat.models import ChatSession, Message
from chat.sharing import members
from tests.conftest import as_user, frames_until, select, tab
from tests.sampling import one_in

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


@pytest.fixture
def chat(person):
    return ChatSession.objects.create(user=person, title="Who?")


@pytest.fixture
def run(personal_run, chat, person):
    """A run in a chat of two members."""
    Run.objects.filter(pk=personal_run.pk).update(topic=chat.topic)
    Message.objects.create(session=chat, author=person, run=personal_run, text="Who?")
    return Run.objects.get()


@pytest.fixture
def reader(chat, stranger):
    members.add_member(chat, "eve", "read")
    return stranger


def comment(user, run, text, step=1):
    sent = {"step": step, f"comment-{run.pk}-{step}": text}
    return as_user(user).post(f"/traces/{run.pk}/comments/", sent)


def test_a_readers_comment_is_in_the_chat_and_in_the_trace(run, chat, reader, person):
    answer = comment(reader, run, "Are you\nsure?")

    assert answer.status_code == 302
    for page in (f"/chat/{chat.pk}/", f"/traces/{run.pk}/"):
        shown = as_user(person).get(page)
        assert "Are you<br>sure?" in shown.text
        [count] = select(shown, f"#comments-{run.pk}-1-count:not([hidden])")
        [spoken] = count.css(".visually-hidden")
        assert spoken.text(strip=True) == "1 comment"
        assert select(shown, f"#comments-{run.pk}-0")


def test_a_deleted_chat_takes_no_comments(run, chat, reader):
    HiddenTopic.objects.create(topic=chat.topic)

    assert comment(reader, run, "Too late?").status_code == 404
    assert not Comment.objects.exists()


async def test_a_comment_appears_live_on_open_pages(run, chat, reader, person):
    async with (
        tab(person, f"/ws/chat/{chat.pk}/", query=b"after=99") as talk,
        tab(person, f"/ws/runs/{run.pk}/") as trace,
    ):
        await frames_until(talk, "composer-state")
        await frames_until(trace, "run-")
        await sync_to_async(comments.add)(reader, run, 1, "<b>Sure?</b>")
        said = [(await frames_until(page, "Sure?"))[-1] for page in (talk, trace)]
        kept = await Comment.objects.aget()
        await sync_to_async(comments.delete)(reader, kept.pk)
        [*_, gone] = await frames_until(talk, "-said")

    assert all("&lt;b&gt;Sure?&lt;/b&gt;" in frame for frame in said)
    assert all(f'id="comments-{run.pk}-1-count"' in frame for frame in said)
    assert "Sure?" not in gone


@pytest.mark.parametrize("query", ["after=99&away=900", "over&away=900"])
async def test_a_reconnected_page_gets_missed_comments(query, run, chat, reader, person):
    await sync_to_async(comments.add)(reader, run, 1, "Sure?")
    path = f"/ws/runs/{run.pk}/" if "over" in query else f"/ws/chat/{chat.pk}/"

    async with tab(person, path, query=query.encode()) as page:
        [*_, frame] = await frames_until(page, "Sure?")

    assert f'id="comments-{run.pk}-1-said"' in frame


async def test_a_page_opened_before_sharing_can_be_commented(
    personal_run, chat, person, stranger
):
    await Run.objects.aupdate(topic=chat.topic)
    about = {"session": chat, "author": person, "run": personal_run, "text": "Who?"}
    message = await Message.objects.acreate(**about)
    query = f"after={message.pk}".encode()
    async with tab(person, f"/ws/chat/{chat.pk}/", query=query) as page:
        await frames_until(page, "composer-state")
        await sync_to_async(members.add_member)(chat, "eve", "read")

        await frames_until(page, f'id="comments-{personal_run.pk}-1"')


def test_only_the_author_can_delete_a_comment(run, reader, person):
    comment(reader, run, "Sure?")
    path = f"/traces/{run.pk}/comments/{Comment.objects.get().pk}/delete/"

    assert as_user(person).post(path).status_code == 404
    assert path not in as_user(person).get(f"/traces/{run.pk}/").text
    assert as_user(reader).post(path).status_code == 302
    assert not Comment.objects.exists()


def test_reviewers_and_removed_members_read_no_comments(run, chat, reader, reviewer):
    comment(reader, run, "Between us")
    members.remove_member(chat, reader.pk)

    seen = as_user(reviewer).get(f"/traces/{run.pk}/").text

    assert "Between us" not in seen
    assert comment(reviewer, run, "me, too").status_code == 404
    assert comment(reader, run, "and me").status_code == 404
    assert not Comment.objects.for_user(reader).exists()


def test_an_unshared_chat_has_no_comment_form(personal_run, person):
    shown = as_user(person).get(f"/traces/{personal_run.pk}/").text

    assert 'class="comments"' not in shown
    assert comment(person, personal_run, "hm").status_code == 404


@pytest.mark.parametrize(
    ("text", "step"), one_in(4, [("", 1), (" \0 ", 1), ("x" * 10_001, 1), ("hm", 9)])
)
def test_a_rejected_comment_has_an_error_and_keeps_its_text(text, step, run, reader):
    answer = comment(reader, run, text, step)

    assert answer.status_code == 422
    assert text.strip(" \0") in answer.text
    assert not Comment.objects.exists()
