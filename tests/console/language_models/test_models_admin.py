"""Models in the console: names, settings, tests and what agents see of them."""

import json

import pytest
from asgiref.sync import sync_to_async
from django.forms import modelform_factory
from django.urls import reverse

from agents.console.agent_admin.agents import AgentForm
from agents.llm.wire.provider_errors import UNREACHABLE_REASONS
from agents.models import Agent, AuditEntry, LanguageModel, ModelConnection
from tests.conftest import as_staff
from tests.llm.capability_server import model_with
from tests.sampling import one_in
from tests.wire import WireServer, closed_port, fail, models, serve_in_thread

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("agent")]
LIST = reverse("admin:agents_languagemodel_changelist")
ADD = reverse("admin:agents_languagemodel_add")
TEST = reverse("admin:agents_languagemodel_test_new")
KEY = "sk-of-this-row-0123456789"
FIELDS = {
    "label": "fast",
    "model": "gpt-4.1",
    "enabled": "on",
    **dict.fromkeys(["options", "parameters", "fallbacks", "context_window"], ""),
    "image_input": "auto",
}


@pytest.fixture
def connection():
    return make_connection()


def make_connection(provider="openai", prefix="openai", api_key=KEY, **columns):
    return ModelConnection.objects.create(
        name=f"of {provider}", provider=provider, prefix=prefix, api_key=api_key, **columns
    )


def page(row):
    return reverse("admin:agents_languagemodel_change", args=[row.pk])


def add(client, row, **fields):
    return client.post(ADD, FIELDS | {"connection": row.pk} | fields)


def change(client, row, **fields):
    kept = {"connection": row.connection_id, "model": row.model}
    return client.post(page(row), FIELDS | kept | fields)


def wrong(answer):
    assert answer.status_code == 200, answer.text[:2000]
    return answer.context["adminform"].form.errors


def save_model(admin_client, connection, **fields):
    answer = add(admin_client, connection, **fields)
    assert answer.status_code == 302, wrong(answer)
    return LanguageModel.objects.get(label=fields.get("label", "fast"))


NAMES = {
    ("openai", "gpt-4.1"): "openai/gpt-4.1",
    ("openai", "openai/gpt-4.1"): "openai/gpt-4.1",
    ("anthropic", "claude-x"): "anthropic/claude-x",
    ("gemini", "gemini-x"): "gemini/gemini-x",
    ("azure", "mine"): "azure/mine",
    ("bedrock", "anthropic.claude-x"): "bedrock/anthropic.claude-x",
    ("ollama", "ollama_chat/llama3"): "ollama_chat/llama3",
    ("compatible", "meta/llama3"): "openai/meta/llama3",
    ("compatible", "mistral/small"): "openai/mistral/small",
    ("other", "together_ai/x/y"): "together_ai/x/y",
    ("other", "x/y"): "together_ai/x/y",
}


PREFIX = {"compatible": "openai", "other": "together_ai"}


@pytest.mark.parametrize(("typed", "name"), one_in(4, NAMES.items()))
def test_model_names_are_saved_in_litellm_notation(admin_client, typed, name):
    provider, model = typed
    connection = make_connection(provider, PREFIX.get(provider, provider))
    row = save_model(admin_client, connection, model=model)

    assert row.model == name


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    one_in(
        4,
        [
            ({"label": "a/b"}, "label", "no spaces or slashes"),
            ({"label": "demo"}, "label", "demo model"),
            ({"connection": ""}, "connection", "required"),
            ({"model": "two words"}, "model", "without spaces"),
            ({"model": "anthropic/claude-x"}, "model", "from Anthropic"),
            ({"parameters": '{"temprature": 1}'}, "parameters", "temprature"),
            ({"parameters": '{"api_base": "http://evil"}'}, "parameters", "api_base"),
            ({"parameters": '{"max_tokens": "many"}'}, "parameters", "whole number"),
            ({"parameters": "{"}, "parameters", "line 1"),
            ({"options": '{"api_base": "http://evil"}'}, "options", "api_base"),
            ({"options": '{"azure_ad_token": "x"}'}, "options", "Additional secrets"),
            ({"options": '{"vertex_project": "mine"}'}, "options", "in the connection"),
            ({"fallbacks": "fast"}, "fallbacks", "own fallback"),
            ({"fallbacks": "nobody"}, "fallbacks", "model nobody doesn't exist"),
            ({"input_price": "1"}, "output_price", "both prices"),
            ({"input_price": "nan", "output_price": "1"}, "input_price", "number"),
            ({"concurrency": "0"}, "concurrency", "greater than or equal to 1"),
            ({"model": "nul\0"}, "model", "Null characters"),
        ],
    ),
)
def test_an_unusable_model_is_not_saved(admin_client, connection, fields, field, words):
    errors = wrong(add(admin_client, connection, **fields))

    assert words in " ".join(errors[field])
    assert not LanguageModel.objects.exists()


@pytest.mark.parametrize("field", ["options", "parameters"])
def test_a_lone_surrogate_is_rejected_with_a_message(admin_client, connection, field):
    assert wrong(add(admin_client, connection, **{field: r'{"stop": "\ud800"}'}))[field]


def test_fallbacks_can_be_labels_names_and_disabled_models(admin_client, connection):
    save_model(admin_client, connection, label="off", enabled="")
    row = save_model(admin_client, connection, fallbacks="off  mistral/small\ndemo off")

    assert row.fallbacks == "off\nmistral/small\ndemo"


def test_zero_prices_are_saved(admin_client, connection):
    row = save_model(admin_client, connection, input_price="0", output_price="0")

    assert (row.input_price, row.output_price) == (0, 0)


def test_without_a_connection_one_is_asked_for_first(admin_client):
    answer = admin_client.get(ADD)

    assert answer.headers["location"] == reverse("admin:agents_modelconnection_add")


def test_a_label_is_fixed_and_deleting_lists_the_agents_that_use_it(
    admin_client, agent, connection
):
    row = save_model(admin_client, connection)
    change(admin_client, row, label="slow")
    agent.model = "fast"
    agent.save()
    delete = reverse("admin:agents_languagemodel_delete", args=[row.pk])
    answer = admin_client.post(delete, {"post": "yes"}, follow=True)

    told = [str(message) for message in answer.context["messages"]]
    assert "fast was deleted, but these agents still use it: helper." in told


def test_a_model_without_a_key_is_saved_with_a_warning(admin_client, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    connection = make_connection(api_key="")
    answer = admin_client.post(ADD, FIELDS | {"connection": connection.pk}, follow=True)

    assert "The model fast has no API key." in answer.text


def agent_form(agent):
    return reverse("admin:agents_agent_change", args=[agent.pk])


def test_an_agent_form_offers_the_configured_models(admin_client, agent, connection):
    save_model(admin_client, connection)
    save_model(admin_client, connection, label="off", enabled="")

    shown = admin_client.get(agent_form(agent)).text
    assert '<option value="fast">openai/gpt-4.1</option>' in shown
    assert 'value="off"' not in shown


def test_an_agent_with_an_unusable_model_is_saved_with_a_warning(
    admin_client, agent, connection
):
    save_model(admin_client, connection, enabled="")
    form = admin_client.get(agent_form(agent)).context["adminform"].form
    fields = {k: v for k, v in form.initial.items() if v is not None}
    del fields["given"]  # the tools have inputs of their own
    chosen = {"model": "fast", "fallback_models": "openai/gpt-4.1"}

    answer = admin_client.post(agent_form(agent), fields | chosen, follow=True)
    told = [str(message) for message in answer.context["messages"]]
    assert "The model fast is disabled." in told
    agent.refresh_from_db()
    assert agent.model == "fast"


def test_a_label_can_be_a_fallback(admin_client, agent, connection):
    save_model(admin_client, connection)
    agent.fallback_models = "fast\nnobody"
    form = modelform_factory(Agent, AgentForm, fields=["fallback_models"])
    errors = form({"fallback_models": "fast\nnobody"}, instance=agent).errors

    assert "Line 2 (nobody)" in str(errors)
    assert "Line 1" not in str(errors)


def test_the_health_page_lists_unusable_models_of_agents(admin_client, agent, connection):
    row = save_model(admin_client, connection)
    agent.model = "fast"
    agent.save()
    good = admin_client.get(reverse("admin:agents_health")).text
    LanguageModel.objects.filter(pk=row.pk).update(enabled=False)
    bad = admin_client.get(reverse("admin:agents_health")).text

    sentence = "The model fast is disabled."
    assert (sentence in good, sentence in bad) == (False, True)


def test_the_chat_shows_the_label_of_the_model(admin_client, agent, connection):
    save_model(admin_client, connection)
    agent.model = "openai/gpt-4.1"
    agent.save()

    assert [choice.label for choice in admin_client.get("/").context["agents"]] == ["fast"]


async def lines(client, address=TEST, **fields):
    answer = await client.post(
        address, FIELDS | fields, headers={"accept": "application/x-ndjson"}
    )
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    pieces = [json.loads(line) async for part in answer for line in part.decode().splitlines()]
    said = "".join(piece.get("said", "") for piece in pieces)
    return said, "".join(piece.get("html", "") for piece in pieces)


@sync_to_async
def connect(server, api_key=KEY):
    url = server if isinstance(server, str) else server.url
    return make_connection("compatible", base_url=url, api_key=api_key).pk


async def test_an_unsaved_model_is_tested_without_saving_it(admin_async_client):
    async with WireServer(model_with("tools", "vision", "schema")) as server:
        fields = {"connection": await connect(server), "label": ""}
        said, html = await lines(
            admin_async_client, **fields, input_price="1000", output_price="2000"
        )

    assert said == "Good morning to you."
    for sentence in [
        "The model responded.",
        "The model can call tools.",
        "The model can read images.",
        "follows a JSON Schema",
    ]:
        assert sentence in html
    assert "11" in html
    assert "Cost: $0.0250." in html
    assert {r.headers["authorization"] for r in server.requests} == {f"Bearer {KEY}"}
    assert KEY not in html
    assert not await LanguageModel.objects.aexists()


async def test_a_test_lists_missing_capabilities_and_their_consequence(
    admin_async_client, connection
):
    async with WireServer(model_with("schema")) as server:
        _, html = await lines(admin_async_client, connection=await connect(server))

    assert "This model does not support tools." in html
    assert "tool call format to “ReAct text”." in html
    assert "can&#x27;t read images: This model does not support vision." in html


def listed(client, connection, **fields):
    address = reverse("admin:agents_languagemodel_models")
    answer = client.post(address, FIELDS | {"connection": connection.pk} | fields)
    assert KEY not in answer.text
    return answer.json()


def test_the_form_offers_the_models_of_the_connection(admin_client):
    with serve_in_thread(pages=models("small", "large", "text-embedding-3")) as server:
        connection = make_connection("compatible", base_url=server.url)
        asked = listed(admin_client, connection, refresh="1")
        remembered = listed(admin_client, connection)

    assert [model["name"] for model in asked["models"]] == ["small", "large"]
    assert asked["sentence"] == "Connected. 2 models found."
    assert asked == remembered
    assert [(r.path, r.headers["authorization"]) for r in server.requests] == [
        ("/v1/models", f"Bearer {KEY}")
    ]
    assert not LanguageModel.objects.exists()


def test_where_a_provider_cannot_be_asked_the_price_list_has_its_models(admin_client):
    told = listed(admin_client, make_connection("anthropic", "anthropic"), refresh="1")

    assert any("claude-sonnet" in model["name"] for model in told["models"])
    assert "price list" in told["sentence"]
    own = make_connection("other", "poe", base_url="https://host.example/v1")
    assert listed(admin_client, own, refresh="1")["isGood"] is False


def test_listing_models_needs_the_change_permission(admin_client, person, connection):
    client = as_staff(person, "view_languagemodel")
    address = reverse("admin:agents_languagemodel_models")

    assert client.post(address, {"connection": connection.pk}).status_code == 403
    assert admin_client.get(address).status_code == 405


async def test_a_rejected_key_ends_the_test_before_any_model_request(
    admin_async_client, connection
):
    pages = {"/v1/models": fail(401, f"Incorrect API key provided: {KEY}")}
    async with WireServer(model_with("tools"), pages=pages) as server:
        said, html = await lines(admin_async_client, connection=await connect(server))

    assert [request.path for request in server.requests] == ["/v1/models"]
    assert "rejected the API key: Incorrect API key provided: ***" in html
    assert "Checked free of charge." in html
    assert (said, KEY in html) == ("", False)
    entry = await AuditEntry.objects.aget(action="model.test_ended")
    assert entry.detail["outcome"].startswith("failed: The provider of")


@pytest.mark.parametrize(
    ("pages", "key", "sentence"),
    [
        (models("small"), KEY, "The key was accepted."),
        (models("small"), "", "The server responded."),
        ({}, KEY, "This server has no free check."),
    ],
)
async def test_a_test_names_the_kind_of_check(
    admin_async_client, pages, key, sentence, connection
):
    async with WireServer(model_with("tools"), pages=pages) as server:
        _, html = await lines(admin_async_client, connection=await connect(server, key))

    assert sentence in html
    assert "The model responded." in html


async def test_a_failed_test_has_a_message_and_advice_without_the_key(
    admin_async_client, connection
):
    async with WireServer([fail(401, f"Incorrect API key provided: {KEY}")]) as server:
        said, html = await lines(admin_async_client, connection=await connect(server))

    assert "Incorrect API key provided: ***" in html
    assert "Check this model&#x27;s API key." in html
    assert KEY not in html + said


async def test_an_unreachable_url_has_a_message(admin_async_client):
    nowhere = await connect(f"http://127.0.0.1:{closed_port()}/v1")
    _, html = await lines(admin_async_client, connection=nowhere)

    assert UNREACHABLE_REASONS["ConnectError"] in html
    assert "Check that the URL is correct and the server is running" in html


async def test_messages_of_a_model_test_are_in_the_readers_language(
    admin_async_client, connection
):
    admin_async_client.cookies["django_language"] = "ja"
    async with WireServer([fail(401, "No.")]) as server:
        _, html = await lines(admin_async_client, connection=await connect(server))

    assert "キー" in html


def test_without_javascript_the_test_is_a_page(admin_client):
    with serve_in_thread(model_with("tools", "vision", "schema")) as server:
        chosen = {"connection": make_connection("compatible", base_url=server.url).pk}
        answer = admin_client.post(TEST, FIELDS | chosen, headers={"accept": "text/html,*/*"})

    shown = answer.text
    assert "Good morning to you." in shown
    assert "The model can read images." in shown
    assert KEY not in shown


def test_testing_a_model_needs_the_change_permission(admin_client, person, connection):
    client = as_staff(person)

    row = save_model(admin_client, connection)
    theirs, missing = (
        reverse("admin:agents_languagemodel_test", args=[n]) for n in (row.pk, 99)
    )
    assert admin_client.get(TEST).status_code == 405
    assert [client.post(at, FIELDS).status_code for at in (TEST, theirs, missing)] == [403] * 3
    assert admin_client.post(missing, FIELDS).status_code == 404


def test_the_default_model_is_named_in_the_readers_language(admin_client):
    admin_client.cookies["django_language"] = "ja"

    shown = admin_client.get("/admin/agents/languagemodel/").text

    assert "既定のデモモデル（" in shown
    assert "no model is configured" not in shown
