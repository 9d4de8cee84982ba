"""Configured models in runs."""

import os
import re

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError

from agents import runs
from agents.catalog.language_models import model_clients, model_setups, planner_factory
from agents.catalog.language_models.model_setups import ModelSetup
from agents.engine.errors import ModelError
from agents.metering.budgets import Payer
from agents.models import Agent, AgentStep, LanguageModel, Run
from agents.web.presentation.formats import status_text
from agents.web.presentation.steps import step_notes
from chat import messages
from chat.errors import MessageRejected
from tests.conftest import as_async_user, run_question
from tests.language_models import make_model
from tests.wire import WireServer, fail, say

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]
HELLO = {"model": "fast", "messages": [{"role": "user", "content": "Hello?"}]}
KEY = "sk-of-this-row-0123456789"


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for name in [name for name in os.environ if name.endswith(("_API_KEY", "_API_BASE"))]:
        monkeypatch.delenv(name)


def test_the_demo_model_knows_who_can_connect_a_real_one(person, administrator, configure):
    def find_contact(user):
        payer = Payer(user=user.pk)
        return model_clients.build_llm(ModelSetup(name="demo"), payer).llm.administrator

    assert find_contact(administrator) is None
    assert find_contact(person) == ""
    configure(contact="https://help.example.org")
    assert find_contact(person) == "https://help.example.org"


def create_model(label="fast", **columns):
    given = {"provider": "compatible", "model": "openai/gpt-4.1", "api_key": KEY}
    return make_model(label, **given | columns)


def thinking_with(agent, name, **columns):
    agent.model = name
    for column, value in columns.items():
        setattr(agent, column, value)
    agent.save()


@sync_to_async
def use_model(agent, label="fast", **columns):
    """Give the agent a model of its own."""
    create_model(label, **columns)
    thinking_with(agent, label)


async def run_agent(agent, user=None):
    run = await run_question("Hello?", agent=agent, user=user)
    events = {event.type: event.data async for event in run.events.order_by("seq")}
    return run, events


@pytest.mark.parametrize("name", ["fast", "openai/gpt-4.1"])
async def test_the_next_run_uses_key_url_parameters_and_price_of_the_row(agent, name):
    async with WireServer([say("Hello.")]) as server:
        columns = {"base_url": server.url, "parameters": {"temperature": 0.3}}
        prices = {"input_price": 1_000_000, "output_price": 0}
        await sync_to_async(create_model)(**columns, **prices)
        await sync_to_async(thinking_with)(agent, name)
        run, events = await run_agent(agent)

    request = server.requests[0]
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert (request.body["model"], request.body["temperature"]) == ("gpt-4.1", 0.3)
    assert (run.status, run.model, run.answer) == ("completed", name, "Hello.")
    assert events["usage"]["cost"] == events["usage"]["prompt_tokens"] == run.cost
    behind = events["run_started"].get("provider_model", events["run_started"]["model"])
    assert behind == "openai/gpt-4.1"


async def test_azure_requests_have_deployment_and_version():
    async with WireServer([say("Hello.")]) as server:
        about = {"provider": "azure", "model": "azure/mine", "api_version": "2024-10-21"}
        row = await sync_to_async(create_model)(
            base_url=server.url.removesuffix("/v1"), **about
        )
        [_ async for _ in model_clients.llm_from_row(row).stream(**HELLO)]

    request = server.requests[0]
    path = "/openai/deployments/mine/chat/completions?api-version=2024-10-21"
    assert (request.path, request.headers["api-key"]) == (path, KEY)


async def test_bedrock_requests_use_the_rows_keys_and_region():
    async with WireServer() as server:
        keys = {"aws_access_key_id": "AKIAOFTHISROW", "aws_secret_access_key": "never-shown-1"}
        place = {"aws_bedrock_runtime_endpoint": server.url.removesuffix("/v1")}
        about = {"model": "bedrock/anthropic.claude-x", "region": "eu-central-1", "api_key": ""}
        row = await sync_to_async(create_model)(**about, secrets=keys, options=place)
        with pytest.raises(ModelError) as refused:
            [_ async for _ in model_clients.llm_from_row(row).stream(**HELLO)]

    signed = server.requests[0].headers["authorization"]
    assert signed.startswith("AWS4-HMAC-SHA256 Credential=AKIAOFTHISROW/")
    assert "/eu-central-1/bedrock/" in signed
    assert "never-shown" not in str(refused.value)


async def test_two_rows_can_have_the_same_model_at_two_urls(agent):
    async with WireServer([say("One.")]) as one, WireServer([say("Two.")]) as two:
        await sync_to_async(create_model)("one", base_url=one.url)
        await use_model(agent, "two", base_url=two.url)

        assert (await run_agent(agent))[0].answer == "Two."


async def test_a_step_page_names_the_model_behind_the_label(agent, person):
    async with WireServer([say("Hello.")]) as server:
        await use_model(agent, base_url=server.url)
        run, _ = await run_agent(agent, person)
    page = await (await as_async_user(person)).get(f"/traces/{run.pk}/steps/1/?tab=request")

    assert "to fast (openai/gpt-4.1)" in page.text


async def test_fallbacks_of_the_agent_come_before_those_of_the_row(agent):
    refusal = fail(401, "Wrong key.")
    async with WireServer([refusal]) as bad, WireServer([say("Hello.")]) as good:
        await sync_to_async(create_model)("a", base_url=bad.url, fallbacks="c\nb")
        await sync_to_async(create_model)("b", base_url=bad.url, enabled=False)
        await sync_to_async(create_model)("c", base_url=good.url)
        await sync_to_async(thinking_with)(agent, "a", fallback_models="b")
        run, _ = await run_agent(agent)

    steps = [event.data async for event in run.events.filter(type="status").order_by("seq")]
    assert [(note["from"], note["to"]) for note in steps] == [("a", "b"), ("b", "c")]
    assert run.answer == "Hello."
    request = (await run.steps.alast()).request
    assert (request["model"], request["provider_model"]) == ("c", "openai/gpt-4.1")


async def test_context_window_and_max_output_come_from_the_row(agent):
    added_row = sync_to_async(create_model)
    await added_row(context_window=1000, parameters={"max_tokens": 64})
    planner = (await sync_to_async(planner_factory.build_planners)(agent, "fast"))[0]

    assert (planner.window, planner.parameters["max_tokens"]) == (1000, 64)


KEYLESS_AZURE = {"model": "azure/mine", "api_key": "", "base_url": "https://x.openai.azure.com"}
TROUBLES = {
    "off": ({"enabled": False}, "is disabled"),
    "no key": ({"api_key": "", "model": "anthropic/claude-x"}, "has no API key"),
    "no address": ({"model": "azure/mine"}, "has no URL"),
    "azure without key": (KEYLESS_AZURE, "has no API key"),
}


@pytest.mark.parametrize(("columns", "sentence"), TROUBLES.values(), ids=TROUBLES)
def test_configuration_errors_are_reported_before_a_run_starts(
    agent, person, columns, sentence
):
    create_model(**columns)
    thinking_with(agent, "fast")

    with pytest.raises(MessageRejected, match=f"The model fast {sentence}."):
        messages.save(None, person, "Hello?", "a")
    assert not Run.objects.exists()


def test_an_unreadable_key_is_reported_before_a_run_starts(agent, person, settings):
    create_model()
    thinking_with(agent, "fast")
    settings.ENCRYPTION_KEYS = ["another one"]

    with pytest.raises(MessageRejected, match="can't be decrypted"):
        messages.save(None, person, "Hello?", "a")


def test_an_environment_key_is_used_only_for_its_provider(monkeypatch):
    create_model(model="anthropic/claude-x", api_key="")
    create_model(
        "other", model="anthropic/claude-x", api_key="", base_url="https://proxy.example"
    )
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-from-outside")

    assert model_setups.configuration_error("fast") is None
    assert model_setups.configuration_error("other") is None  # whose server may want none
    metered = model_clients.llm_from_row(LanguageModel.objects.get(label="other"))
    assert metered.llm.llm._api_key is None


def test_a_rows_key_goes_to_its_provider_despite_the_environment(monkeypatch):
    row = create_model(model="openai/gpt-4.1", base_url="")
    monkeypatch.setenv("OPENAI_API_BASE", "http://elsewhere.example/v1")

    assert model_clients.llm_from_row(row).base_url == "https://api.openai.com/v1"


async def test_a_model_disabled_during_a_run_ends_it_with_a_message(agent):
    await use_model(agent)
    run = await sync_to_async(runs.prepare)(query="Hello?", topic="chat.1", agent=agent)
    await LanguageModel.objects.aupdate(enabled=False)

    runs.launch(run)
    await runs.wait(run)
    await run.arefresh_from_db()

    assert (run.status, run.detail) == ("failed", "The model fast is disabled.")


def test_a_model_without_permission_is_an_error(agent, person, stranger):
    row = create_model()
    row.groups.add(group := Group.objects.create(name="writers"))
    person.groups.add(group)
    thinking_with(agent, "fast")

    assert model_setups.ensure_usable(agent, "fast", person) is None
    with pytest.raises(MessageRejected, match="t have access to the model fast"):
        messages.save(None, stranger, "Hello?", "a")


def test_a_row_does_not_replace_the_default_model():
    found = model_setups.default_model()
    create_model(model=found.model)

    assert model_setups.model_chain(Agent(), found.model)[0].row is None


def test_a_name_that_is_neither_label_nor_model_is_an_error():
    create_model()

    assert str(model_setups.configuration_error("slow")) == "The model slow doesn't exist."
    known = ["fast", "gpt-4.1", "mistral/y", "demo"]
    assert [model_setups.configuration_error(name) for name in known] == [None] * 4
    assert "Unknown provider: x." in str(model_setups.configuration_error("x/y"))


@pytest.mark.parametrize("limit", ["concurrency", "requests_per_minute", "tokens_per_minute"])
def test_a_planner_has_the_limits_of_its_row(agent, limit):
    create_model(**{limit: 5})
    limiter = planner_factory.build_planners(agent, "fast")[0].rate_limiter

    assert limiter.label == "fast"
    assert limiter.limits.most(limit.partition("_")[0]) == 5


def test_a_model_without_limits_has_no_rate_limiter(agent):
    create_model()

    assert planner_factory.build_planners(agent, "fast")[0].rate_limiter is None


@pytest.mark.parametrize(
    ("columns", "field"),
    [
        ({"label": "demo"}, "label"),
        ({"label": "openai/x"}, "label"),
        ({"label": "two words"}, "label"),
        ({"base_url": "host/v1"}, "base_url"),
        ({"base_url": "http://[::1"}, "base_url"),
        ({"base_url": "https://me:secret@host/v1"}, "base_url"),
        ({"input_price": 1.0}, "output_price"),
        ({"output_price": -1.0, "input_price": 0}, "output_price"),
        ({"concurrency": 0}, "concurrency"),
    ],
)
def test_an_invalid_row_is_rejected(columns, field):
    row = make_model("fast", "openai/x")
    of_connection = "base_url" in columns
    checked = row.connection if of_connection else row
    for name, value in columns.items():
        setattr(checked, name, value)

    with pytest.raises(ValidationError) as wrong:
        checked.full_clean()
    assert field in wrong.value.message_dict


@pytest.mark.parametrize(
    ("model", "columns", "is_enforced"),
    [
        ("ollama/small", {}, True),
        ("openai/small", {"base_url": "http://127.0.0.1:8080/v1"}, True),
        ("openai/gpt-4.1", {}, False),
        ("openai/gpt-4.1", {"last_test": {"parts": {"schema": True}}}, True),
        ("ollama/small", {"last_test": {"parts": {"schema": False}}}, False),
        ("ollama/small", {"abilities": {"schema": False}}, False),
    ],
)
def test_own_servers_enforce_schemas_unless_a_test_or_a_setting_says_no(
    agent, model, columns, is_enforced
):
    make_model("fast", model, **columns)

    assert planner_factory.build_planners(agent, "fast")[0].enforces_schemas is is_enforced


async def test_a_run_that_waits_for_the_rate_limit_says_so(agent):
    async with WireServer(lambda request: say("Hello.", chunks=4, delay=0.1)) as server:
        await use_model(agent, "crowded", base_url=server.url, concurrency=1)
        both = [await sync_to_async(runs.prepare)(query="?", topic=f"chat.{n}") for n in (1, 2)]
        for run in both:
            runs.launch(run)
        for run in both:
            await runs.wait(run)

    notes = [step.notes async for step in AgentStep.objects.all()]
    waits = [note for some in notes for note in some if note["kind"] == "limited"]
    (said,) = [step_notes.note_sentence(note) for note in waits]
    assert re.fullmatch(r"Waited [\d.]+ s: crowded has a concurrency limit of 1\.", said)
    assert await Run.objects.filter(status="completed").acount() == 2


@pytest.mark.parametrize(
    ("limit", "sentence"),
    [
        ("concurrency", "Waiting: fast has a concurrency limit of 3."),
        ("requests", "Waiting: fast has a request limit of 3 per minute."),
        ("tokens", "Waiting: fast has a token limit of 3 per minute."),
    ],
)
def test_the_rate_limit_message_names_the_limit(limit, sentence):
    facts = {"kind": "limited", "limit": limit, "most": 3, "model": "fast"}

    assert status_text.waiting_sentence([facts]) == sentence


async def test_a_key_echoed_by_its_provider_is_neither_saved_nor_logged(agent, caplog):
    refusal = fail(401, f"Incorrect API key provided: {KEY}.")
    async with WireServer([refusal]) as server:
        await use_model(agent, base_url=server.url)
        run, _ = await run_agent(agent)

    told = [str(event.data) async for event in run.events.all()]
    assert run.status == "failed"
    assert "Incorrect API key provided: ***" in run.detail
    assert KEY not in run.detail + caplog.text + "".join(told)
