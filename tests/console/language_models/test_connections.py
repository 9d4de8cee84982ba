"""Connections in the console: keys that never come back, models with ticks, tests of all."""

import json

import pytest
from asgiref.sync import async_to_sync
from django.test.utils import override_settings
from django.urls import reverse
from django.utils import translation

from agents.console.language_models.model_providers import CARDS
from agents.models import Agent, AuditEntry, Deletion, LanguageModel, ModelConnection
from tests.conftest import as_staff
from tests.language_models import make_model
from tests.llm.capability_server import model_with
from tests.sampling import one_in
from tests.wire import fail, models, serve_in_thread

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("agent")]
LIST = reverse("admin:agents_modelconnection_changelist")
ADD = reverse("admin:agents_modelconnection_add")
KEY, OTHER = "sk-of-this-row-0123456789", "sk-another-one-987654321"
FIELDS = {
    "name": "Mine",
    "provider": "openai",
    "api_key": KEY,
    **dict.fromkeys(["prefix", "base_url", "api_version", "region", "options"], ""),
}


def rows_of(secrets):
    """What the page sends of additional secrets."""
    return {"secrets-name": [*secrets, ""], "secrets-value": [*secrets.values(), ""]}


def page(row, name="change"):
    return reverse(f"admin:agents_modelconnection_{name}", args=[row.pk])


def change(client, row, **fields):
    kept = {"provider": row.provider, "prefix": row.prefix, "base_url": row.base_url}
    return client.post(page(row), FIELDS | kept | {"api_key": ""} | fields)


def wrong(answer):
    assert answer.status_code == 200, answer.text[:2000]
    return answer.context["adminform"].form.errors


def save_connection(client, **fields):
    answer = client.post(ADD, FIELDS | fields)
    assert answer.status_code == 302, wrong(answer)
    return ModelConnection.objects.get(name=fields.get("name", "Mine"))


@pytest.fixture
def server():
    with serve_in_thread(model_with("tools"), pages=models("small", "large")) as server:
        yield server


@pytest.fixture
def connected(admin_client, server):
    return save_connection(admin_client, provider="compatible", base_url=server.url)


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    one_in(
        3,
        [
            ({"provider": "azure"}, "base_url", "Enter the URL"),
            ({"provider": "compatible"}, "base_url", "Enter the URL"),
            ({"provider": "bedrock", "base_url": "https://x"}, "base_url", "region determines"),
            ({"base_url": "host:8000"}, "base_url", "full URL"),
            ({"base_url": "http://a:b@host/"}, "base_url", "password"),
            ({"base_url": "http://169.254.169.254/"}, "base_url", "cloud metadata address"),
            ({"options": '{"api_base": "http://evil"}'}, "options", "api_base"),
            ({"options": '{"azure_ad_token": "x"}'}, "options", "Additional secrets"),
            (rows_of({"aws_access_key_id": ""}), "secrets", "Enter a value for"),
            ({"api_key": "two words"}, "api_key", "without spaces"),
            ({"api_key": "鍵"}, "api_key", "ASCII characters"),
            ({"provider": "other"}, "prefix", "Enter the provider"),
            ({"provider": "other", "prefix": "nobody"}, "prefix", "Unknown provider: nobody"),
        ],
    ),
)
def test_an_unusable_connection_is_not_saved(admin_client, fields, field, words):
    errors = wrong(admin_client.post(ADD, FIELDS | fields))

    assert words in " ".join(errors[field])
    assert not ModelConnection.objects.exists()


def test_no_page_shows_a_secret(admin_client, person):
    secrets = rows_of({"aws_secret_access_key": "of-amazon-12345"})
    row = save_connection(admin_client, provider="bedrock", **secrets)
    looker = as_staff(person, "view_modelconnection")

    for client in (admin_client, looker):
        shown = client.get(page(row)).text
        assert KEY not in shown
        assert "of-amazon" not in shown
    assert "A key is saved" in admin_client.get(page(row)).text
    assert KEY not in str(ModelConnection.objects.values_list("api_key").query)


def test_a_key_stays_unless_replaced_or_cleared(admin_client):
    row = save_connection(admin_client)
    for fields, key in [({}, KEY), ({"api_key": OTHER}, OTHER), ({"forget_key": "on"}, "")]:
        assert change(admin_client, row, **fields).status_code == 302
        row.refresh_from_db()
        assert row.api_key.reveal() == key


@pytest.mark.parametrize(
    "fields",
    one_in(
        3,
        [
            {"base_url": "https://elsewhere.example/v1"},
            {"provider": "anthropic", "prefix": ""},
            {"provider": "other", "prefix": "mistral"},
            {"provider": "compatible", "base_url": "https://api.openai.com/v1"},
        ],
    ),
    ids=["address", "provider", "prefix", "same host, typed"],
)
def test_a_key_is_not_kept_for_another_host(admin_client, fields):
    row = save_connection(admin_client)

    errors = wrong(change(admin_client, row, **fields))
    assert "Enter it again" in " ".join(errors["api_key"])
    assert change(admin_client, row, api_key=OTHER, **fields).status_code == 302


@pytest.mark.parametrize(
    ("saved", "posted", "field"),
    [
        ({}, {"provider": "anthropic", "prefix": ""}, "provider"),
        ({"provider": "other", "prefix": "mistral"}, {"prefix": "groq"}, "prefix"),
    ],
)
def test_a_connection_with_models_keeps_its_provider(admin_client, saved, posted, field):
    row = save_connection(admin_client, **saved)
    LanguageModel.objects.create(label="small", model="small", connection=row)

    errors = wrong(change(admin_client, row, api_key=OTHER, **posted))
    assert "has models" in " ".join(errors[field])
    row.refresh_from_db()
    assert row.api_key.reveal() == KEY


@pytest.mark.parametrize(
    "fields",
    one_in(
        2,
        [
            {"region": "us-east-1"},
            {"options": '{"aws_bedrock_runtime_endpoint": "https://elsewhere.example"}'},
            {"options": '{"aws_role_name": "arn:aws:iam::123456789012:role/other"}'},
        ],
    ),
    ids=["region", "endpoint", "account"],
)
def test_an_aws_key_is_bound_to_its_region_and_account(admin_client, fields):
    secrets = rows_of({"aws_access_key_id": "AKIAEXAMPLE", "aws_secret_access_key": "s"})
    region = {"region": "eu-central-1"}
    row = save_connection(admin_client, provider="bedrock", **region, **secrets)

    errors = wrong(change(admin_client, row, **region | fields))
    assert "Enter it again" in " ".join(errors["api_key"])
    assert "Enter their values again" in " ".join(errors["secrets"])
    again = secrets | {"api_key": OTHER}
    assert change(admin_client, row, **region | fields | again).status_code == 302


def test_an_unreadable_key_must_be_entered_again(admin_client):
    with override_settings(ENCRYPTION_KEYS=["one that is lost"]):
        row = ModelConnection.objects.create(name="Mine", prefix="openai", api_key=KEY)
    make_row = {"label": "fast", "model": "openai/x", "connection": row}
    LanguageModel.objects.create(**make_row)

    assert "Enter it again" in " ".join(wrong(change(admin_client, row))["api_key"])
    models_page = admin_client.get(reverse("admin:agents_languagemodel_changelist"))
    assert "be decrypted" in models_page.text
    assert change(admin_client, row, api_key=OTHER).status_code == 302


def test_the_provider_is_chosen_first(admin_client):
    html = admin_client.get(ADD).text

    for key in ("openai", "azure", "bedrock", "mistral", "groq", "openrouter", "hosted_vllm"):
        assert f'href="{ADD}?provider={key}"' in html
    assert "api_key" not in html


@pytest.mark.parametrize(
    ("provider", "needed"),
    [
        ("openai", ["api_key"]),
        ("azure", ["base_url", "api_key", "api_version"]),
        ("bedrock", ["region", "api_key", "secrets"]),
        ("ollama", ["base_url"]),
        ("mistral", ["api_key"]),
        ("other", ["prefix", "api_key", "base_url", "options", "secrets"]),
    ],
)
def test_the_form_starts_with_what_the_provider_needs(admin_client, provider, needed):
    first = admin_client.get(f"{ADD}?provider={provider}").context["adminform"].fieldsets[0][1]

    assert first["fields"][2:] == needed


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


def test_two_servers_with_the_same_model_are_two_connections(admin_client, server):
    with serve_in_thread(model_with(), pages=models("small")) as other:
        for address in (server.url, other.url):
            fields = {"name": "", "preset": "compatible", "base_url": address}
            admin_client.post(ADD, FIELDS | fields | {"provider": "compatible"})
    first, second = ModelConnection.objects.order_by("pk")
    assert first.name != second.name
    for row in (first, second):
        tick = {"models": ["openai/small"], "models_shown": [""]}
        assert change(admin_client, row, name=row.name, **tick).status_code == 302

    rows = LanguageModel.objects.order_by("pk")
    assert [(row.label, row.connection) for row in rows] == [
        ("small", first),
        ("small-2", second),
    ]


def test_the_models_of_a_server_are_listed_once_it_is_saved(admin_client, connected, server):
    html = admin_client.get(page(connected)).text

    assert [request.path for request in server.requests] == ["/v1/models"]
    assert "Connected. 2 models found." in html
    assert html.count('name="models"') == 2
    assert admin_client.get(LIST).context["original"] == connected
    entry = AuditEntry.objects.get(action="model.tested")
    assert (entry.detail["check"], KEY in str(entry.detail)) == ("models", False)
    assert not LanguageModel.objects.exists()


def test_ticked_models_are_on_and_others_off(admin_client, connected):
    shown = {"models_shown": [""]}
    change(admin_client, connected, models=["openai/small"], **shown)
    row = LanguageModel.objects.get()
    assert (row.label, row.model, row.enabled) == ("small", "openai/small", True)

    shown = {"models_shown": ["openai/small"]}
    change(admin_client, connected, models=["openai/large"], **shown)
    enabled = LanguageModel.objects.values_list("label", "enabled")
    assert dict(enabled) == {"small": False, "large": True}


def test_a_model_added_meanwhile_is_not_turned_off(admin_client, connected):
    LanguageModel.objects.create(label="new", model="openai/new", connection=connected)

    change(admin_client, connected, models_shown=[""])

    assert LanguageModel.objects.get().enabled


def test_all_models_are_tested_together_and_the_result_is_their_state(admin_client, connected):
    sent = {"models": ["openai/small", "openai/large"], "models_shown": [""]}
    kind = {"accept": "application/x-ndjson"}
    answer = admin_client.post(page(connected, "test"), sent, headers=kind)

    async def read():
        return b"".join([piece async for piece in answer.streaming_content])

    told = [json.loads(line) for line in async_to_sync(read)().decode().splitlines()]
    assert {piece["model"] for piece in told} == {"openai/small", "openai/large"}
    assert all("Working" in piece["html"] for piece in told)
    rows = LanguageModel.objects.all()
    assert [row.last_test["parts"]["tools"] for row in rows] == [True, True]


def test_a_rejected_key_is_said_and_its_models_stay(admin_client, connected):
    change(admin_client, connected, models=["openai/small"], models_shown=[""])
    with serve_in_thread(pages={"/v1/models": fail(401, f"No: {KEY}")}) as other:
        moved = {"base_url": other.url, "api_key": KEY}
        answer = admin_client.post(
            page(connected), FIELDS | {"provider": "compatible"} | moved, follow=True
        )

    assert "rejected the API key" in answer.text
    assert "Key rejected" in answer.text
    assert KEY not in answer.text
    assert answer.text.count('name="models"') == 2


def test_the_list_is_refreshed_with_one_button(admin_client, connected, server):
    server.pages = models("small", "large", "new")
    answer = admin_client.post(page(connected, "refresh"), follow=True)

    assert "3 models found" in answer.text
    assert admin_client.get(page(connected, "refresh")).status_code == 405


def test_chat_with_a_model_opens_a_new_chat_that_has_it(admin_client, connected, agent):
    Agent.objects.filter(pk=agent.pk).update(allows_model_choice=True)
    sent = {"models": ["openai/large"], "models_shown": [""], "_chat": "openai/large"}
    answer = change(admin_client, connected, **sent)

    assert answer.headers["location"] == "/?model=large"
    new = admin_client.get(answer.headers["location"])
    assert new.context["options"].model == "large"


def test_a_link_to_a_model_that_does_not_exist_chooses_none(admin_client):
    assert admin_client.get("/?model=nothing").context["options"].model == ""


def test_deleting_a_connection_says_what_uses_its_models_and_can_be_undone(
    admin_client, connected, agent
):
    change(admin_client, connected, models=["openai/small"], models_shown=[""])
    Agent.objects.filter(pk=agent.pk).update(model="small")

    asked = admin_client.get(page(connected, "delete")).text
    assert "small is used by helper." in asked
    admin_client.post(page(connected, "delete"), {"post": "yes"})
    assert not LanguageModel.objects.exists()

    [deletion] = Deletion.objects.all()
    address = reverse("admin:restore_deleted")
    admin_client.post(f"{address}?items={deletion.kind}:{deletion.pk}")
    row = LanguageModel.objects.get()
    assert (row.label, row.connection.api_key.reveal()) == ("small", KEY)


def test_a_key_of_the_environment_is_a_connection_without_a_key(admin_client, monkeypatch):
    monkeypatch.setenv("GROQ_API_KEY", "from-outside")
    assert 'title="GROQ_API_KEY"' in admin_client.get(f"{ADD}?provider=openai").text

    row = save_connection(admin_client, preset="groq", provider="other", api_key="")
    html = admin_client.get(page(row)).text
    assert "From the environment (GROQ_API_KEY)" in html
    assert "from-outside" not in html
    assert 'title="GROQ_API_KEY"' not in html


def test_only_who_can_change_connections_tests_and_refreshes(admin_client, person, connected):
    client = as_staff(person, "view_modelconnection")

    places = [page(connected, name) for name in ("refresh", "test")]
    assert [client.post(place).status_code for place in places] == [403, 403]
    assert client.get(ADD).status_code == 403
    change_only = as_staff(person, "change_modelconnection", "view_modelconnection")
    change(change_only, connected, models=["openai/small"], models_shown=[""])
    assert not LanguageModel.objects.exists()


def test_the_default_model_is_chosen_on_the_page_of_defaults(admin_client, person):
    defaults = reverse("admin:agents_languagemodel_defaults")
    row = make_model("fast", "openai/x", api_key=KEY)

    assert "ASHIATO_EMBEDDING_MODEL" in admin_client.get(defaults).text
    for chosen, is_default in [(row.pk, True), ("", False)]:
        admin_client.post(defaults, {"chat": chosen})
        row.refresh_from_db()
        assert row.is_default is is_default
    looker = as_staff(person, "view_languagemodel")
    assert looker.post(defaults, {"chat": row.pk}).status_code == 403
