"""Models in the console: setup, test, and hidden secrets."""

import json

import pytest
from asgiref.sync import sync_to_async
from django.forms import modelform_factory
from django.test.utils import override_settings
from django.urls import reverse
from django.utils import translation

from agents.console.agent_admin.agents import AgentForm
from agents.console.language_models import listed_models
from agents.console.language_models.model_providers import CARDS
from agents.llm.wire.provider_errors import UNREACHABLE_REASONS
from agents.models import Agent, AuditEntry, LanguageModel
from tests.conftest import as_staff
from tests.llm.capability_server import model_with
from tests.sampling import one_in
from tests.wire import WireServer, closed_port, fail, models, serve_in_thread

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("agent")]
LIST = reverse("admin:agents_languagemodel_changelist")
ADD = reverse("admin:agents_languagemodel_add")
TEST = reverse("admin:agents_languagemodel_test_new")
KEY, OTHER = "sk-of-this-row-0123456789", "sk-another-one-987654321"
FIELDS = {
    "label": "fast",
    "provider": "openai",
    "model": "gpt-4.1",
    "api_key": KEY,
    "enabled": "on",
    **dict.fromkeys(["base_url", "api_version", "region", "secrets", "options"], ""),
    **dict.fromkeys(["parameters", "fallbacks", "context_window"], ""),
    "image_input": "auto",
}


def page(row):
    return reverse("admin:agents_languagemodel_change", args=[row.pk])


def add(client, **fields):
    return client.post(ADD, FIELDS | fields)


def change(client, row, **fields):
    kept = {"provider": row.provider, "model": row.model, "base_url": row.base_url}
    return client.post(page(row), FIELDS | kept | {"api_key": ""} | fields)


def wrong(answer):
    assert answer.status_code == 200, answer.text[:2000]
    return answer.context["adminform"].form.errors


def save_model(admin_client, **fields):
    answer = add(admin_client, **fields)
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
}


@pytest.mark.parametrize(("typed", "name"), one_in(4, NAMES.items()))
def test_model_names_are_saved_in_litellm_notation(admin_client, typed, name):
    provider, model = typed
    address = "" if provider == "bedrock" else "https://host.example/v1"
    row = save_model(admin_client, provider=provider, model=model, base_url=address)

    assert (row.model, row.api_key.reveal()) == (name, KEY)


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    one_in(
        4,
        [
            ({"label": "a/b"}, "label", "no spaces or slashes"),
            ({"label": "demo"}, "label", "demo model"),
            ({"model": "two words"}, "model", "without spaces"),
            ({"model": "anthropic/claude-x"}, "model", "from Anthropic"),
            ({"provider": "other", "model": "gpt"}, "model", "provider/model"),
            ({"provider": "azure"}, "base_url", "Enter the URL"),
            ({"provider": "compatible"}, "base_url", "Enter the URL"),
            ({"provider": "bedrock", "base_url": "https://x"}, "base_url", "region determines"),
            ({"base_url": "host:8000"}, "base_url", "full URL"),
            ({"base_url": "http://a:b@host/"}, "base_url", "password"),
            ({"parameters": '{"temprature": 1}'}, "parameters", "temprature"),
            ({"parameters": '{"api_base": "http://evil"}'}, "parameters", "api_base"),
            ({"parameters": '{"max_tokens": "many"}'}, "parameters", "whole number"),
            ({"parameters": "{"}, "parameters", "line 1"),
            ({"options": '{"api_base": "http://evil"}'}, "options", "api_base"),
            ({"options": '{"azure_ad_token": "x"}'}, "options", "Additional secrets"),
            ({"secrets": '{"aws_access_key_id": 1}'}, "secrets", "string values"),
            ({"secrets": "[]"}, "secrets", "string values"),
            ({"fallbacks": "fast"}, "fallbacks", "own fallback"),
            ({"fallbacks": "nobody"}, "fallbacks", "model nobody doesn't exist"),
            ({"input_price": "1"}, "output_price", "both prices"),
            ({"input_price": "nan", "output_price": "1"}, "input_price", "number"),
            ({"concurrency": "0"}, "concurrency", "greater than or equal to 1"),
            ({"model": "nul\0"}, "model", "Null characters"),
            ({"api_key": "two words"}, "api_key", "without spaces"),
            ({"api_key": "鍵"}, "api_key", "ASCII characters"),
        ],
    ),
)
def test_an_unusable_model_is_not_saved(admin_client, fields, field, words):
    errors = wrong(add(admin_client, **fields))

    assert words in " ".join(errors[field])
    assert not LanguageModel.objects.exists()


@pytest.mark.parametrize("field", ["options", "parameters", "secrets"])
def test_a_lone_surrogate_is_rejected_with_a_message(admin_client, field):
    assert wrong(add(admin_client, **{field: r'{"stop": "\ud800"}'}))[field]


def test_fallbacks_can_be_labels_names_and_disabled_models(admin_client):
    save_model(admin_client, label="off", enabled="")
    row = save_model(admin_client, fallbacks="off  mistral/small\ndemo off")

    assert row.fallbacks == "off\nmistral/small\ndemo"


def test_zero_prices_are_saved(admin_client):
    row = save_model(admin_client, input_price="0", output_price="0")

    assert (row.input_price, row.output_price) == (0, 0)


def test_no_page_shows_a_secret(admin_client, person):
    secrets = {"secrets": '{"aws_secret_access_key": "of-amazon-12345"}'}
    row = save_model(admin_client, provider="bedrock", model="anthropic.x", **secrets)
    looker = as_staff(person, "view_languagemodel")

    for client in (admin_client, looker):
        shown = "".join(client.get(at).text for at in (LIST, page(row)))
        assert KEY not in shown
        assert "of-amazon" not in shown
    assert "Already set." in admin_client.get(page(row)).text
    column = LanguageModel.objects.values_list("api_key").query
    assert KEY not in str(column)


def test_a_key_stays_unless_replaced_or_cleared(admin_client):
    row = save_model(admin_client)
    for fields, key in [({}, KEY), ({"api_key": OTHER}, OTHER), ({"forget_key": "on"}, "")]:
        assert change(admin_client, row, **fields).status_code == 302
        row.refresh_from_db()
        assert row.api_key.reveal() == key


@pytest.mark.parametrize(
    "fields",
    one_in(
        4,
        [
            {"base_url": "https://elsewhere.example/v1"},
            {"provider": "anthropic", "model": "claude-x"},
            {"provider": "other", "model": "mistral/small"},
            {"provider": "compatible", "base_url": "https://api.openai.com/v1"},
        ],
    ),
    ids=["address", "provider", "name", "same host, typed"],
)
def test_a_key_is_not_kept_for_another_host(admin_client, fields):
    row = save_model(admin_client)

    errors = wrong(change(admin_client, row, **fields))
    assert "Enter it again" in " ".join(errors["api_key"])
    assert change(admin_client, row, api_key=OTHER, **fields).status_code == 302


BEDROCK = {"provider": "bedrock", "model": "anthropic.x", "region": "eu-central-1"}


@pytest.mark.parametrize(
    "fields",
    one_in(
        4,
        [
            {"region": "us-east-1"},
            {"options": '{"aws_bedrock_runtime_endpoint": "https://elsewhere.example"}'},
            {"options": '{"aws_role_name": "arn:aws:iam::123456789012:role/other"}'},
            {"model": "bedrock/us-west-2/anthropic.x"},
            {"model": "bedrock/arn:aws:bedrock:us-east-1:123456789012:inference-profile/x"},
        ],
    ),
    ids=["region", "endpoint", "account", "region in the name", "account in the name"],
)
def test_an_aws_key_is_bound_to_its_region_and_account(admin_client, fields):
    secrets = {"secrets": '{"aws_access_key_id": "AKIAEXAMPLE", "aws_secret_access_key": "s"}'}
    row = save_model(admin_client, **BEDROCK | secrets)
    kept = BEDROCK | {"model": row.model}

    errors = wrong(change(admin_client, row, **kept | fields))
    assert "Enter it again" in " ".join(errors["api_key"])
    assert "Enter them again" in " ".join(errors["secrets"])
    assert (
        change(admin_client, row, **kept | fields | secrets | {"api_key": OTHER}).status_code
        == 302
    )


def test_changing_the_azure_api_version_needs_the_key_again(admin_client):
    azure = {"provider": "azure", "base_url": "https://x.openai.azure.com"}
    row = save_model(admin_client, **azure, api_version="2024-10-21")

    errors = wrong(change(admin_client, row, **azure, api_version="2025-01-01-preview"))
    assert "Enter it again" in " ".join(errors["api_key"])


def test_another_model_of_the_same_provider_keeps_the_key(admin_client):
    row = save_model(admin_client)

    assert change(admin_client, row, model="openai/gpt-5").status_code == 302
    row.refresh_from_db()
    assert (row.model, row.api_key.reveal()) == ("openai/gpt-5", KEY)


def test_an_unreadable_key_must_be_entered_again(admin_client):
    with override_settings(ENCRYPTION_KEYS=["one that is lost"]):
        row = LanguageModel.objects.create(label="fast", model="openai/x", api_key=KEY)

    assert "Enter it again" in " ".join(wrong(change(admin_client, row))["api_key"])
    assert "be decrypted" in admin_client.get(LIST).text
    assert change(admin_client, row, api_key=OTHER).status_code == 302


def test_a_label_is_fixed_and_deleting_lists_the_agents_that_use_it(admin_client, agent):
    row = save_model(admin_client)
    change(admin_client, row, label="slow")
    agent.model = "fast"
    agent.save()
    delete = reverse("admin:agents_languagemodel_delete", args=[row.pk])
    answer = admin_client.post(delete, {"post": "yes"}, follow=True)

    told = [str(message) for message in answer.context["messages"]]
    assert "fast was deleted, but these agents still use it: helper." in told


def test_a_model_without_a_key_is_saved_with_a_warning(admin_client, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    answer = admin_client.post(ADD, FIELDS | {"api_key": ""}, follow=True)

    assert "The model fast has no API key." in answer.text


def agent_form(agent):
    return reverse("admin:agents_agent_change", args=[agent.pk])


def test_an_agent_form_offers_the_configured_models(admin_client, agent):
    save_model(admin_client)
    save_model(admin_client, label="off", enabled="")

    shown = admin_client.get(agent_form(agent)).text
    assert '<option value="fast">openai/gpt-4.1</option>' in shown
    assert 'value="off"' not in shown


def test_an_agent_with_an_unusable_model_is_saved_with_a_warning(admin_client, agent):
    save_model(admin_client, enabled="")
    form = admin_client.get(agent_form(agent)).context["adminform"].form
    fields = {k: v for k, v in form.initial.items() if v is not None}
    del fields["given"]  # the tools have inputs of their own
    chosen = {"model": "fast", "fallback_models": "openai/gpt-4.1"}

    answer = admin_client.post(agent_form(agent), fields | chosen, follow=True)
    told = [str(message) for message in answer.context["messages"]]
    assert "The model fast is disabled." in told
    agent.refresh_from_db()
    assert agent.model == "fast"


def test_a_label_can_be_a_fallback(admin_client, agent):
    save_model(admin_client)
    agent.fallback_models = "fast\nnobody"
    form = modelform_factory(Agent, AgentForm, fields=["fallback_models"])
    errors = form({"fallback_models": "fast\nnobody"}, instance=agent).errors

    assert "Line 2 (nobody)" in str(errors)
    assert "Line 1" not in str(errors)


def test_the_health_page_lists_unusable_models_of_agents(admin_client, agent):
    row = save_model(admin_client)
    agent.model = "fast"
    agent.save()
    good = admin_client.get(reverse("admin:agents_health")).text
    LanguageModel.objects.filter(pk=row.pk).update(enabled=False)
    bad = admin_client.get(reverse("admin:agents_health")).text

    sentence = "The model fast is disabled."
    assert (sentence in good, sentence in bad) == (False, True)


def test_the_chat_shows_the_label_of_the_model(admin_client, agent):
    save_model(admin_client)
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


async def test_an_unsaved_model_is_tested_without_saving_it(admin_async_client):
    async with WireServer(model_with("tools", "vision", "schema")) as server:
        fields = {"provider": "compatible", "base_url": server.url, "label": ""}
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


async def test_a_test_lists_missing_capabilities_and_their_consequence(admin_async_client):
    async with WireServer(model_with("schema")) as server:
        _, html = await lines(admin_async_client, provider="compatible", base_url=server.url)

    assert "This model does not support tools." in html
    assert "tool call format to “ReAct text”." in html
    assert "can&#x27;t read images: This model does not support vision." in html


async def test_a_saved_model_is_tested_with_its_saved_key(admin_async_client, admin_client):
    async with WireServer(model_with()) as server:
        about = {"provider": "compatible", "base_url": server.url}
        row = await sync_to_async(save_model)(admin_client, **about)
        address = reverse("admin:agents_languagemodel_test", args=[row.pk])
        about |= {"model": row.model, "api_key": "", "_seen": "{}"}
        await lines(admin_async_client, address, **about)
        _, html = await lines(
            admin_async_client, address, **about | {"base_url": f"{server.url}/x"}
        )

    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert "Enter it again" in html  # and the other address wasn't called
    assert not any("/x/" in request.path for request in server.requests)


def listed(client, row=None, **fields):
    name = f"admin:agents_languagemodel_models{'' if row else '_new'}"
    address = reverse(name, args=[row.pk] if row else [])
    answer = client.post(address, FIELDS | fields)
    assert KEY not in answer.text
    return answer.json()


@pytest.fixture
def no_lists_kept():
    listed_models._cache.clear()


@pytest.mark.usefixtures("no_lists_kept")
def test_the_form_offers_the_models_of_the_server(admin_client):
    with serve_in_thread(pages=models("small", "large", "text-embedding-3")) as server:
        about = {"provider": "compatible", "base_url": server.url, "model": "", "label": ""}
        told = [listed(admin_client, **about) for _ in range(2)]

    names = [model["name"] for model in told[0]["models"]]
    assert (names, told[0]["sentence"]) == (
        ["small", "large"],
        "2 models. The key was accepted.",
    )
    assert told[0] == told[1]
    assert [(r.path, r.headers["authorization"]) for r in server.requests] == [
        ("/v1/models", f"Bearer {KEY}")  # the second time it was remembered
    ]
    [entry] = AuditEntry.objects.filter(action="model.tested")
    assert (entry.detail["check"], KEY in str(entry.detail)) == ("models", False)
    assert not LanguageModel.objects.exists()


@pytest.mark.usefixtures("no_lists_kept")
def test_a_saved_key_is_used_for_the_list_of_its_own_server_only(admin_client):
    with serve_in_thread(pages=models("small")) as server:
        row = save_model(admin_client, provider="compatible", base_url=server.url)
        about = {"provider": "compatible", "base_url": server.url, "api_key": ""}
        good = listed(admin_client, row, **about)
        elsewhere = listed(admin_client, row, **about | {"base_url": f"{server.url}/x"})

    assert good["sentence"] == "1 model. The key was accepted."
    assert "Enter it again" in elsewhere["sentence"]
    assert not elsewhere["isGood"]
    assert [request.path for request in server.requests] == ["/v1/models"]


@pytest.mark.usefixtures("no_lists_kept")
@pytest.mark.parametrize(
    ("fields", "sentence", "is_good"),
    [
        ({"provider": "other", "model": "poe/"}, "This server doesn't list its models.", True),
        (
            {"provider": "other", "model": "mistral"},
            "The provider of 'Mistral' rejected the API key: No.",
            False,
        ),
        ({"provider": "other", "model": ""}, "Enter the provider before a slash", False),
        ({"provider": "compatible"}, "Enter the URL.", False),
        ({"base_url": "http://169.254.169.254/"}, "cloud metadata address", False),
        ({"model": "two words"}, "without spaces", False),
    ],
)
def test_a_missing_model_list_has_a_reason(admin_client, fields, sentence, is_good):
    with serve_in_thread(pages={"/v1/models": fail(401, "No.")}) as server:
        if fields.get("model") == "mistral":
            fields = fields | {"base_url": server.url}
        told = listed(admin_client, **fields)

    assert sentence in told["sentence"]
    assert (told["models"], told["isGood"]) == ([], is_good)


def test_listing_models_needs_the_change_permission(admin_client, person):
    client = as_staff(person, "view_languagemodel")
    row = save_model(admin_client)

    new = reverse("admin:agents_languagemodel_models_new")
    own = reverse("admin:agents_languagemodel_models", args=[row.pk])
    assert [client.post(at, FIELDS).status_code for at in (new, own)] == [403, 403]
    assert admin_client.get(new).status_code == 405


async def test_a_rejected_key_ends_the_test_before_any_model_request(admin_async_client):
    pages = {"/v1/models": fail(401, f"Incorrect API key provided: {KEY}")}
    async with WireServer(model_with("tools"), pages=pages) as server:
        said, html = await lines(admin_async_client, provider="compatible", base_url=server.url)

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
async def test_a_test_names_the_kind_of_check(admin_async_client, pages, key, sentence):
    async with WireServer(model_with("tools"), pages=pages) as server:
        about = {"provider": "compatible", "base_url": server.url, "api_key": key}
        _, html = await lines(admin_async_client, **about)

    assert sentence in html
    assert "The model responded." in html


def test_every_provider_with_a_url_has_an_example_and_help_for_it(admin_client):
    form = admin_client.get(f"{ADD}?provider=gemini").context["adminform"].form

    assert form.fields["base_url"].widget.attrs["placeholder"].startswith("https://generative")
    for card in CARDS.values():
        if "base_url" in card.fields:
            assert card.url.startswith("http")
            assert card.url_help


def test_the_help_of_an_own_server_is_in_the_readers_language():
    with translation.override("ja"):
        assert str(CARDS["hosted_vllm"].url_help).startswith("サーバーのURL")


async def test_a_failed_test_has_a_message_and_advice_without_the_key(admin_async_client):
    async with WireServer([fail(401, f"Incorrect API key provided: {KEY}")]) as server:
        said, html = await lines(admin_async_client, provider="compatible", base_url=server.url)

    assert "Incorrect API key provided: ***" in html
    assert "Check this model&#x27;s API key." in html
    assert KEY not in html + said


async def test_an_unreachable_url_has_a_message(admin_async_client):
    nowhere = f"http://127.0.0.1:{closed_port()}/v1"
    _, html = await lines(admin_async_client, provider="compatible", base_url=nowhere)

    assert UNREACHABLE_REASONS["ConnectError"] in html
    assert "Check that the URL is correct and the server is running" in html


async def test_messages_of_a_model_test_are_in_the_readers_language(admin_async_client):
    admin_async_client.cookies["django_language"] = "ja"
    async with WireServer([fail(401, "No.")]) as server:
        _, html = await lines(admin_async_client, provider="compatible", base_url=server.url)

    assert "キー" in html


def test_without_javascript_the_test_is_a_page(admin_client):
    with serve_in_thread(model_with("tools", "vision", "schema")) as server:
        about = {"provider": "compatible", "base_url": server.url}
        answer = admin_client.post(TEST, FIELDS | about, headers={"accept": "text/html,*/*"})

    shown = answer.text
    assert "Good morning to you." in shown
    assert "The model can read images." in shown
    assert KEY not in shown


def test_testing_a_model_needs_the_change_permission(admin_client, person):
    client = as_staff(person)

    row = save_model(admin_client)
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
