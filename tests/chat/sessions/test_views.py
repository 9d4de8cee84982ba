"""Pages without a socket."""

import pytest
from asgiref.sync import sync_to_async

from agents import runs
from agents.models import Agent, Run
from agents.web.consumers.language import page_language
from chat.live.page_state import MAX_MESSAGES
from chat.models import ChatSession, Message
from tests.conftest import frames_until, tab, verify_run
from tests.language_models import make_model
from tests.sampling import one_in

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]


def create_questions(chat, count):
    """Create a conversation of this many questions."""
    before = None
    for at in range(1, count + 1):
        run = Run.objects.create(
            topic=chat.topic, user=chat.user, query=f"Question {at}", status="completed"
        )
        said = {"text": f"Question {at}.", "client_id": str(at), "parent": before}
        before = Message.objects.create(session=chat, author=chat.user, run=run, **said)


async def test_a_question_is_answered_without_a_socket(person_async_client):
    answer = await person_async_client.post("/chat/", {"text": "What is 12.5% of 3480?"})
    run = await Run.objects.aget()
    await runs.wait(run)
    await verify_run(run)

    page = (await person_async_client.get(answer.headers["Location"])).text

    assert answer.status_code == 302
    assert "<strong>435</strong>" in page
    assert "calculator: 3480 * 12.5 / 100" in page


async def test_a_reloaded_page_equals_the_live_one(person_async_client, chat):
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        await page.send_json_to({"type": "message", "text": "6 * 7", "client_id": "a"})
        frames = await frames_until(page, 'class="run" data-status="completed"')

    reloaded = (await person_async_client.get(f"/chat/{chat.pk}/")).text

    run = next(frame for frame in reversed(frames) if "<section" in frame)
    start, end = run.index("<section"), run.index("</section>")
    assert run[start:end] in reloaded


def test_a_long_chat_shows_its_end_and_a_link_to_earlier_messages(person_client, chat):
    create_questions(chat, MAX_MESSAGES + 2)

    page = person_client.get(f"/chat/{chat.pk}/").text
    first = Message.objects.all()[2].pk
    earlier = person_client.get(
        f"/chat/{chat.pk}/?before={first}", headers={"HX-Request": "true"}
    ).text

    assert "Question 2." not in page
    assert "Question 3." in page
    assert f"before={first}" in page
    assert "Question 2." in earlier
    assert "<html" not in earlier


def test_a_page_of_a_long_chat_needs_few_queries(
    person_client, chat, django_assert_max_num_queries
):
    create_questions(chat, MAX_MESSAGES)

    with django_assert_max_num_queries(26):
        page = person_client.get(f"/chat/{chat.pk}/").text

    assert f"Question {MAX_MESSAGES}." in page


def test_the_models_of_all_agents_are_read_in_one_query(
    person_client, chat, django_assert_max_num_queries
):
    create_questions(chat, 2)
    make_model("small", "openai/gpt-4o-mini", api_key="k")
    for number in range(5):
        Agent.objects.create(name=f"agent-{number}", model="small", allows_model_choice=True)

    with django_assert_max_num_queries(27) as asked:
        page = person_client.get(f"/chat/{chat.pk}/").text

    models = [one for one in asked if 'FROM "agents_languagemodel" INNER' in one["sql"]]
    assert len(models) == 1
    assert page.count('data-label="small"') == 5


def test_a_run_page_links_back_to_its_chat(person_client, chat):
    create_questions(chat, 1)
    run = Run.objects.get()

    page = person_client.get(f"/traces/{run.pk}/").text

    assert f'href="/chat/{chat.pk}/#run-{run.pk}"' in page
    assert "ws-connect" not in page


def test_a_run_page_is_live(person_client, person):
    run = Run.objects.create(topic="chat.1", user=person, query="6 * 7")

    page = person_client.get(f"/traces/{run.pk}/").text

    assert f'ws-connect="/ws/runs/{run.pk}/"' in page


def test_a_session_is_renamed_with_and_without_htmx(person_client, chat):
    plain = person_client.post(f"/chat/{chat.pk}/rename/", {"title": "One"})
    part = person_client.post(
        f"/chat/{chat.pk}/rename/", {"title": "Two"}, headers={"HX-Request": "true"}
    )

    assert plain.status_code == 302
    assert "Two" in part.text
    assert "<html" not in part.text


async def test_deleting_the_open_chat_redirects_to_a_new_one(person_async_client, chat):
    other = await ChatSession.objects.acreate(user=chat.user, title="Other")
    on_screen = {"HX-Request": "true", "HX-Current-URL": f"http://testserver/chat/{chat.pk}/"}

    stays = await person_async_client.post(f"/chat/{other.pk}/delete/", headers=on_screen)
    leaves = await person_async_client.post(f"/chat/{chat.pk}/delete/", headers=on_screen)

    assert "HX-Redirect" not in stays.headers
    assert leaves.headers["HX-Redirect"] == "/"


def test_an_agent_picker_is_offered_if_there_are_several(person_client):
    assert 'name="agent"' not in person_client.get("/").text
    Agent.objects.create(name="other")
    Agent.objects.create(name="off", enabled=False)

    page = person_client.get("/").text

    assert '<option value="other"' in page
    assert '<option value="off"' not in page


def test_titles_are_escaped_everywhere(person_client, chat):
    ChatSession.objects.update(title='"><script>alert(1)</script>')

    for page in ("/", f"/chat/{chat.pk}/"):
        shown = person_client.get(page).text
        assert "<script>alert" not in shown
        assert "&lt;script&gt;alert(1)" in shown


@pytest.mark.parametrize(
    ("cookie", "accepted", "language"),
    one_in(
        4,
        [
            ("ja", "en", "ja"),
            ("", "ja,en;q=0.5", "ja"),
            ("tlh", "ja-JP", "ja"),
            ("", "tlh", "en"),
            ("", "", "en"),
        ],
    ),
)
def test_the_socket_uses_the_language_of_its_page(person_client, cookie, accepted, language):
    cookies = {"django_language": cookie} if cookie else {}
    person_client.cookies.load(cookies)
    page = person_client.get("/", headers={"Accept-Language": accepted}).text
    header = (b"accept-language", accepted.encode())

    assert page_language({"cookies": cookies, "headers": [header]}, "") == language
    assert f'<html lang="{language}"' in page


def test_an_unknown_url_gets_the_products_404_page(person_client):
    answer = person_client.get("/nowhere/")

    assert answer.status_code == 404
    assert "This page isn’t available" in answer.text


async def test_a_question_asked_in_one_tab_appears_in_a_page_opened_before(
    person_async_client, chat
):
    async with tab(chat.user, f"/ws/chat/{chat.pk}/") as page:
        await frames_until(page, "composer-state")
        await person_async_client.post(f"/chat/{chat.pk}/messages/", {"text": "6 * 7"})
        frames = await frames_until(page, 'class="run" data-status="completed"')

    assert "6 * 7" in "".join(frames)
    assert await sync_to_async(Run.objects.get)()
