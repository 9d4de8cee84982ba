"""Answers are read aloud by a configured voice, to those who see them in a chat."""

import pytest
from django.urls import reverse

from agents.knowledge.media import speech
from agents.models import Agent, Run, RunAttachment, StoredFile
from tests.conftest import as_async_user
from tests.wire import Reply, WireServer, fail

PATH = "/v1/audio/speech"
MP3 = b"ID3\x04" + bytes(500)
SOUND = {"Content-Type": "audio/mpeg", "Content-Length": str(len(MP3))}
PAGE = Reply(parts=(MP3,), headers=SOUND)
ANSWER = "# Cranes\n\nThey **nest** in April.\n\n```python\nprint(1)\n```\n"

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("folder"),
    pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume"),
]


@pytest.fixture
def run(person):
    agent = Agent.objects.create(name="reader")
    return Run.objects.create(
        user=person, agent=agent, topic="chat.1", query="?", answer=ANSWER, status="completed"
    )


async def listen(user, run, **headers):
    client = await as_async_user(user)
    return await client.get(reverse("runs:speech", args=[run.pk]), headers=headers)


async def content(response):
    if response.streaming:
        return b"".join([piece async for piece in response.streaming_content])
    return response.content


async def test_an_answer_is_streamed_once_and_then_saved(person, run, configure):
    async with WireServer(pages={PATH: PAGE}) as server:
        configure(speech_model="openai/tts", speech_url=server.url, speech_voice="nova")
        first = await content(await listen(person, run))
        again = await listen(person, run, range="bytes=0-3")
        assert (first, again.status_code, again.content) == (MP3, 206, b"ID3\x04")
    [request] = server.requests
    assert request.body["input"] == "Cranes They nest in April."
    assert request.body["voice"] == "nova"


@pytest.mark.parametrize(("model", "cost"), [("tts-1", 0.00039), ("my-own", None)])
async def test_reading_aloud_adds_to_the_cost_of_the_run_once(
    person, run, configure, model, cost
):
    async with WireServer(pages={PATH: PAGE}) as server:
        configure(speech_model=f"openai/{model}", speech_url=server.url)
        for _again in range(2):
            await content(await listen(person, run))
    await run.arefresh_from_db()
    assert run.cost == (cost and pytest.approx(cost))


async def test_safari_gets_parts_of_a_sound_that_is_new(person, run, configure):
    async with WireServer(pages={PATH: PAGE}) as server:
        configure(speech_model="openai/tts", speech_url=server.url)
        response = await listen(person, run, range="bytes=0-1")
    assert (response.status_code, response.content) == (206, b"ID")


async def test_a_deleted_run_takes_its_sound_along(person, run, configure):
    async with WireServer(pages={PATH: PAGE}) as server:
        configure(speech_model="openai/tts", speech_url=server.url)
        await content(await listen(person, run))
    assert await RunAttachment.objects.acount() == 1
    await run.adelete()
    assert await StoredFile.objects.acount() == 0


async def test_without_a_voice_the_browser_is_told_to_read(person, run):
    assert (await listen(person, run)).status_code == 409


async def test_a_failing_service_is_an_error_that_the_page_recovers_from(
    person, run, configure
):
    async with WireServer(pages={PATH: fail(500, "down")}) as server:
        configure(speech_model="openai/tts", speech_url=server.url)
        assert (await listen(person, run)).status_code == 502


async def test_answers_of_others_and_links_on_other_sites_make_no_sound(
    person, run, configure, django_user_model
):
    configure(speech_model="openai/tts", speech_url="http://127.0.0.1:9/v1")
    stranger = await django_user_model.objects.acreate_user("eve")
    foreign = {"sec-fetch-site": "cross-site"}
    assert (await listen(stranger, run)).status_code == 404
    assert (await listen(person, run, **foreign)).status_code == 404


async def test_an_agent_that_hides_personal_data_is_read_by_the_browser(run, configure):
    configure(speech_model="openai/tts")
    run.agent.personal_data = "hidden"
    assert speech.find_voice(run) is None


def test_long_answers_are_cut_between_sentences():
    pieces = list(speech.split("A short sentence. " * 400))
    assert max(map(len, pieces)) <= speech.MAX_REQUEST_CHARS
    assert all(piece.endswith(".") for piece in pieces)
    assert len(list(speech.split("字" * 8_000))) == 3
