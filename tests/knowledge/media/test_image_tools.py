"""Images are made and described by configured models, with advice where that fails."""

import base64

import pytest

from agents.catalog.tools.tool_factory import BUILT_IN_TOOLS
from agents.engine.call_context import CallContext, use_context
from agents.engine.tool import ToolResult
from agents.knowledge.files import store
from agents.knowledge.media import image_models
from agents.llm import media_prices
from agents.models import Agent, Run, RunAttachment
from tests.pictures import png
from tests.wire import WireServer, fail

PATH = "/v1/images/generations"


async def call(tool: str, **input: str) -> ToolResult:
    return await BUILT_IN_TOOLS[tool]().execute(input)


def page(data: bytes = b"", **about):
    return {"data": [{"b64_json": base64.b64encode(data or png()).decode()}], **about}


async def test_an_image_is_an_attachment_of_the_result(configure):
    usage = {"input_tokens": 100, "output_tokens": 1_000}
    async with WireServer(pages={PATH: page(usage=usage)}) as server:
        configure(image_model="openai/gpt-image-1", image_url=server.url)
        result = await call("generate_image", prompt="A crane in snow", shape="portrait")
    [image] = result.attachments
    assert (image.name, image.mime_type, image.data) == (
        "A-crane-in-snow.png",
        "image/png",
        png(),
    )
    assert "$0.04" in result.note
    asked = server.requests[0].body
    assert (asked["prompt"], asked["size"], asked["n"]) == ("A crane in snow", "1024x1536", 1)


async def test_without_a_model_the_tool_says_what_is_missing():
    result = await call("generate_image", prompt="A crane")
    assert result.error == (
        "Images can't be generated: no image model is configured. "
        "Ask an administrator to choose an image model."
    )


async def test_a_refused_prompt_is_not_sent_again(configure):
    refusal = fail(400, "Your request was rejected by the safety system.")
    async with WireServer(pages={PATH: refusal}) as server:
        configure(image_model="gpt-image-1", image_url=server.url, model_retries=2)
        result = await call("generate_image", prompt="A crane")
    assert "safety system" in result.error
    assert len(server.requests) == 1


async def test_a_busy_provider_is_not_asked_twice_for_a_paid_image(configure):
    async with WireServer(pages={PATH: fail(503, "busy")}) as server:
        configure(image_model="gpt-image-1", image_url=server.url, model_retries=2)
        result = await call("generate_image", prompt="A crane")
    assert result.is_error
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "reply", [{"data": []}, {"data": [{"url": "http://x"}]}, page(b"text")]
)
async def test_what_is_not_an_image_is_an_error(configure, reply):
    async with WireServer(pages={PATH: reply}) as server:
        configure(image_model="gpt-image-1", image_url=server.url)
        assert (await call("generate_image", prompt="A crane")).is_error


async def test_empty_and_endless_prompts_are_refused():
    for prompt in ("", "x" * 5_000):
        result = await call("generate_image", prompt=prompt)
        assert result.is_error
        assert result.mendable


def test_sizes_are_those_the_model_knows():
    assert image_models.size_for("openai/dall-e-2", "portrait") == "1024x1024"
    assert image_models.size_for("openai/flux", "landscape") == "1280x768"
    assert media_prices.image_usage("openai/unknown", {"output_tokens": 5}).cost is None


class InChat(CallContext):
    def __init__(self, topic: str = "") -> None:
        self.chat_id = topic
        self.used: list[dict] = []

    def report_usage(self, usage) -> None:
        self.used.append(usage)


@pytest.mark.parametrize(
    ("model", "cost", "note"),
    [("gpt-image-1", 0.04, "$0.040"), ("my-own", None, "cost unknown")],
)
async def test_an_image_counts_for_the_run_that_asked_for_it(configure, model, cost, note):
    usage = {"output_tokens": 1_000}
    async with WireServer(pages={PATH: page(usage=usage)}) as server:
        configure(image_model=f"openai/{model}", image_url=server.url)
        with use_context(context := InChat()):
            result = await call("generate_image", prompt="A crane")
    [used] = context.used
    assert used["cost"] == (cost and pytest.approx(cost))
    assert used["completion_tokens"] == 1_000
    assert note in result.note


@pytest.fixture
def run(person, monkeypatch):
    agent = Agent.objects.create(name="painter")
    run = Run.objects.create(user=person, agent=agent, topic="chat.1", query="?")
    data = png()
    file = store.save(data, name="chart.png", owner=None)
    RunAttachment.objects.create(
        run=run, digest="a" * 64, mime_type="image/png", name="chart.png", size=9, file=file
    )
    monkeypatch.setattr(image_models, "_recognize", lambda found: "Sales 2026")
    return run


async def describe(topic: str, **input: str) -> ToolResult:
    with use_context(InChat(topic)):
        return await call("describe_image", **input)


@pytest.mark.django_db(transaction=True)
async def test_an_image_is_described_by_its_text_and_by_a_model_that_sees(run, configure):
    reply = {"choices": [{"message": {"content": "A bar chart with three bars."}}]}
    async with WireServer(pages={"/v1/chat/completions": reply}) as server:
        configure(vision_model="openai/seer", vision_url=server.url)
        result = await describe("chat.1", name="Chart.png", question="How many bars?")
    assert "Sales 2026" in result.output
    assert "three bars" in result.output
    text, image = server.requests[0].body["messages"][0]["content"]
    assert text["text"] == "How many bars?"
    assert image["image_url"]["url"].startswith("data:image/png;base64,")


@pytest.mark.django_db(transaction=True)
async def test_a_vision_model_cannot_use_more_than_it_was_sent_and_asked_for(run, configure):
    usage = {"prompt_tokens": 10**12, "completion_tokens": 10**12}
    reply = {"choices": [{"message": {"content": "A chart."}}], "usage": usage}
    context = InChat("chat.1")
    async with WireServer(pages={"/v1/chat/completions": reply | {"response_cost": 9e5}}) as s:
        configure(vision_model="openai/my-own", vision_url=s.url)
        with use_context(context):
            result = await call("describe_image", name="chart.png")

    assert "A chart." in result.output
    [used] = context.used
    assert used["total_tokens"] < 30_000
    assert used["cost"] is None
    assert used["reported"].keys() == usage.keys()


@pytest.mark.django_db(transaction=True)
async def test_without_a_vision_model_the_text_is_returned(run):
    result = await describe("chat.1", name="chart.png")
    assert "Sales 2026" in result.output
    assert "No vision model is configured" in result.output


@pytest.mark.django_db(transaction=True)
async def test_an_agent_that_hides_personal_data_shows_no_image_to_a_model(run, configure):
    configure(vision_model="openai/seer", vision_url="http://127.0.0.1:9/v1")
    await Agent.objects.aupdate(personal_data="hidden")
    result = await describe("chat.1", name="chart.png")
    assert "This agent sends no files to models" in result.output


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("topic", ["chat.2", ""])
async def test_an_image_of_another_chat_does_not_exist(run, topic):
    result = await describe(topic, name="chart.png")
    assert "This chat has no image named 'chart.png'" in result.error
    assert "There are no images." in result.error


def test_text_in_an_image_is_untrusted_like_other_text_from_outside():
    assert BUILT_IN_TOOLS["describe_image"]().is_untrusted
