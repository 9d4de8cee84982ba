"""Images and sounds of tools, in the form each provider expects."""

import json
from base64 import b64encode

import pytest

from agents.engine import (
    ReActPlanner,
    ToolResult,
)
from agents.engine.tool import Attachment
from agents.llm.direct.direct_model import DirectModel
from agents.llm.litellm_model import LiteLLMModel
from tests import wire
from tests.engine.conftest import Echo, make_runtime
from tests.llm import anthropic_wire as anthropic
from tests.llm import gemini_wire as gemini
from tests.llm import ollama_wire as ollama
from tests.pictures import png, wav

pytestmark = [
    pytest.mark.filterwarnings("ignore:Item '.*' on TypedDict class:UserWarning"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_:DeprecationWarning"),
]

KEY = "sk-very-secret-key-0123456789"
PICTURE = Attachment(data=png(), mime_type="image/png", name="chart.png")
SOUND = Attachment(data=wav(), mime_type="audio/wav")
IMAGE, AUDIO = b64encode(png()).decode(), b64encode(wav()).decode()
OPENAI = [wire.call(("draw", '{"text": "x"}')), wire.say("Up.")]
REACT = [wire.say('Action: draw\nAction Input: {"text": "x"}'), wire.say("Final Answer: Up.")]


async def drawn(llm, model, replies, found=(PICTURE,), address=None, **options):
    """Return the last request of a run whose tool draws something."""

    async def draw(input):
        return ToolResult("Here.", attachments=found)

    async with wire.WireServer(replies) as server:
        url = address(server) if address else server.url
        options = {"senses": ["image", "audio"], **options}
        agent = make_runtime(
            ReActPlanner(llm(KEY, url), model, **options), [Echo("draw", draw)]
        )
        result = await agent.run("Draw", raise_on_failure=True)
        assert result.answer == "Up."
        return server.requests[-1].body


@pytest.fixture(params=[DirectModel, LiteLLMModel], ids=["direct", "litellm"])
def route(request):
    return request.param


async def test_openai_gets_a_user_message_after_the_result(route):
    body = await drawn(route, "openai/wire", OPENAI)

    result, message = body["messages"][-2:]
    assert (result["role"], message["role"]) == ("tool", "user")
    text, image = message["content"]
    assert "draw (call call_0)" in text["text"]
    assert image == {
        "type": "image_url",
        "image_url": {"url": f"data:image/png;base64,{IMAGE}"},
    }
    assert "attachments" not in json.dumps(body)


async def test_mistral_gets_a_message_between_the_result_and_the_image(route):
    body = await drawn(route, "mistral/wire", OPENAI)

    roles = [message["role"] for message in body["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]


async def test_openai_gets_audio_as_input(route):
    body = await drawn(route, "openai/wire", OPENAI, [SOUND])

    audio = {"type": "input_audio", "input_audio": {"data": AUDIO, "format": "wav"}}
    assert body["messages"][-1]["content"][-1] == audio


async def test_a_text_model_gets_the_image_with_the_observation(route):
    body = await drawn(route, "openai/wire", REACT, dialect="react")

    text, image = body["messages"][-1]["content"]
    assert text["text"].startswith("Observation: Here.\n[image: chart.png, image/png")
    assert image["type"] == "image_url"


async def test_a_model_without_vision_gets_text_only(route):
    body = await drawn(route, "openai/wire", OPENAI, senses=[])

    assert body["messages"][-1]["role"] == "tool"
    assert "this model can't see images]" in body["messages"][-1]["content"]
    assert IMAGE not in json.dumps(body)


async def test_anthropic_gets_an_image_block(route):
    call = anthropic.reply(anthropic.call("t1", "draw", '{"text": "x"}'))
    replies = [call, anthropic.reply(anthropic.text("Up."), stop="end_turn")]

    body = await drawn(route, anthropic.MODEL, replies, address=anthropic.address)

    blocks = body["messages"][-1]["content"]
    [image] = [block for block in blocks if block["type"] == "image"]
    source = {"type": "base64", "media_type": "image/png", "data": IMAGE}
    assert image["source"] == source
    assert blocks[0]["type"] == "tool_result"


async def test_gemini_gets_inline_data(route):
    replies = [
        gemini.reply([gemini.call("draw", text="x")]),
        gemini.reply([gemini.text("Up.")]),
    ]

    body = await drawn(route, "gemini/gemini-2.5-flash", replies, address=gemini.address)

    parts = [part for content in body["contents"] for part in content["parts"]]
    images = [part.get("inlineData") or part.get("inline_data") for part in parts]
    [image] = filter(None, images)
    assert sorted(image.values()) == sorted([IMAGE, "image/png"])


async def test_ollama_gets_images_next_to_the_text(route):
    replies = [
        ollama.reply({"tool_calls": [ollama.call("draw", text="x")]}),
        ollama.reply({"content": "Up."}),
    ]

    body = await drawn(route, "ollama_chat/llava", replies, address=ollama.address)

    assert body["messages"][-1]["images"] == [IMAGE]
