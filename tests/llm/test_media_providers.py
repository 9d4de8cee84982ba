"""Sound and images by providers with APIs of their own, which LiteLLM translates."""

import base64
from typing import Any

import pytest

from agents.engine.errors import AgentError, ModelError
from agents.knowledge.media.transcript import parse_reply, to_lines
from agents.llm import media_api
from agents.llm.media_models import MediaModel, Upload
from tests.pictures import png
from tests.wire import HANG, Reply, WireServer, fail

pytestmark = [
    pytest.mark.slow,  # importing LiteLLM takes seconds
    pytest.mark.filterwarnings("ignore:Item 'summary' on TypedDict"),
]
SOUND = Upload(name="recording.wav", mime_type="audio/wav", data=b"RIFF....")
KEY = "key-1234567890"
WORDS = [
    {"word": "Good", "start": 0.1, "end": 0.4},
    {"word": "morning.", "start": 0.5, "end": 1.0},
    {"word": "Bye.", "start": 62.0, "end": 62.5},
]
HEARD = {
    "metadata": {"duration": 100.0},
    "results": {
        "channels": [{"alternatives": [{"transcript": "Good morning. Bye.", "words": WORDS}]}]
    },
}
MP3 = b"ID3\x04" + bytes(200)


def at(server: WireServer, model: str, path: str = "", **more: Any) -> MediaModel:
    url = server.url.removesuffix("/v1") + path
    return MediaModel(model=model, url=url, key=KEY, **{"seconds": 20.0, **more})


async def test_deepgram_transcribes_with_times_and_a_cost():
    async with WireServer(pages={"/v1/listen": HEARD}) as server:
        service = at(server, "deepgram/nova-3", "/v1")
        reply = await media_api.transcribe(service, SOUND, language="en")
    assert to_lines(parse_reply(reply)) == [
        (0.1, "[00:00] Good morning."),
        (62.0, "[01:02] Bye."),
    ]
    assert reply["response_cost"] == pytest.approx(0.0071, abs=0.001)
    [request] = server.requests
    assert request.headers["authorization"] == f"Token {KEY}"
    assert request.body == SOUND.data


VOICE = "/v1/text-to-speech/21m00Tcm4TlvDq8ikWAM"  # which LiteLLM calls alloy


def spoken(data: bytes) -> Reply:
    length = str(len(data))
    return Reply(parts=(data,), headers={"Content-Type": "audio/x", "Content-Length": length})


async def test_speech_in_another_format_is_refused():
    async with WireServer(pages={VOICE: spoken(b"RIFF\x10\0\0\0WAVEfmt ")}) as server:
        service = at(server, "elevenlabs/eleven_multilingual_v2")
        with pytest.raises(ModelError, match="not MP3"):
            await anext(media_api.speak(service, "Hello.", voice="alloy"))


async def test_elevenlabs_speaks():
    async with WireServer(pages={VOICE: spoken(MP3)}) as server:
        service = at(server, "elevenlabs/eleven_multilingual_v2")
        heard = [piece async for piece in media_api.speak(service, "Hello.", voice="alloy")]
    assert b"".join(heard) == MP3
    assert server.requests[0].headers["xi-api-key"] == KEY
    assert server.requests[0].body["text"] == "Hello."


async def test_gemini_makes_an_image_and_reports_its_cost():
    image = {"mimeType": "image/png", "data": base64.b64encode(png()).decode()}
    counts = {"promptTokenCount": 5, "candidatesTokenCount": 1_290, "totalTokenCount": 1_295}
    reply = {
        "candidates": [{"content": {"parts": [{"inlineData": image}]}}],
        "usageMetadata": counts,
    }
    path = "/v1beta/models/gemini-2.5-flash-image:generateContent"
    async with WireServer(pages={path: reply}) as server:
        service = at(server, "gemini/gemini-2.5-flash-image", "/v1beta")
        made = await media_api.generate_image(service, "A crane", size="1024x1024")
    assert made.data == png()
    assert made.usage.cost == pytest.approx(0.039)
    assert server.requests[0].headers["x-goog-api-key"] == KEY


async def test_a_model_of_anthropic_describes_an_image():
    reply = {
        "id": "1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5",
        "content": [{"type": "text", "text": "A chart."}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 100, "output_tokens": 5},
    }
    async with WireServer(pages={"/v1/messages": reply}) as server:
        service = at(server, "anthropic/claude-sonnet-4-5")
        seen = await media_api.describe_image(service, png(), "image/png", question="What?")
    assert seen.text == "A chart."
    assert (seen.usage.prompt_tokens, seen.usage.completion_tokens) == (100, 5)
    assert seen.usage.cost
    image = server.requests[0].body["messages"][0]["content"][1]
    assert image["source"]["media_type"] == "image/png"


async def test_a_refused_key_is_a_sentence_without_the_key():
    async with WireServer(pages={"/v1/listen": fail(401, f"bad key {KEY}")}) as server:
        service = at(server, "deepgram/nova-3", "/v1")
        with pytest.raises(ModelError) as refused:
            await media_api.transcribe(service, SOUND)
    assert KEY not in f"{refused.value} {refused.value.advice}"
    assert len(server.requests) == 1


async def test_a_busy_provider_is_asked_again():
    replies = iter([fail(503, "busy"), HEARD])
    async with WireServer(pages={"/v1/listen": lambda _: next(replies)}) as server:
        service = at(server, "deepgram/nova-3", "/v1", max_retries=1)
        assert (await media_api.transcribe(service, SOUND))["text"]
    assert len(server.requests) == 2


async def test_a_provider_that_hangs_is_given_up():
    async with WireServer(pages={"/v1/listen": Reply(parts=(b"{", HANG))}) as server:
        service = at(server, "deepgram/nova-3", "/v1", seconds=1.0, max_retries=0)
        with pytest.raises(AgentError, match="didn't respond in time"):
            await media_api.transcribe(service, SOUND)


async def test_an_unknown_provider_is_named():
    service = MediaModel(model="nobody/model-1", key=KEY)
    with pytest.raises(ModelError, match="nobody"):
        await media_api.transcribe(service, SOUND)
