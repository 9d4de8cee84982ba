"""Attacks through a model's free settings: typed, imported, tested and planted."""

import json
import os
from contextlib import aclosing

import pytest
from asgiref.sync import sync_to_async
from django.core.management import CommandError
from django.forms import modelform_factory
from django.urls import reverse

from agents import runs
from agents.catalog.language_models import model_setups
from agents.console.agent_admin.agents import AgentForm
from agents.console.language_models import model_tester
from agents.console.system.config_files.importer import apply_file, preview_file
from agents.console.system.config_files.permissions import TerminalUser
from agents.management.commands.serve import check_model
from agents.models import Agent, AuditEntry, LanguageModel, ModelConnection
from tests.conftest import run_question
from tests.language_models import unsaved_model
from tests.llm.capability_server import model_with
from tests.sampling import one_in
from tests.wire import WireServer, fail, say

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("agent", "run_executor"),
]
KEY = "sk-of-this-row-0123456789"
ADD = reverse("admin:agents_languagemodel_add")
TEST = reverse("admin:agents_languagemodel_test_new")
CONNECT = reverse("admin:agents_modelconnection_add")
CONNECTION = {
    "name": "mine",
    "provider": "openai",
    "api_key": KEY,
    **dict.fromkeys(["prefix", "base_url", "api_version", "region", "options"], ""),
}
MODEL = {
    "label": "fast",
    "model": "gpt-4.1",
    "enabled": "on",
    **dict.fromkeys(["options", "parameters", "fallbacks", "context_window"], ""),
    "image_input": "auto",
}
ROLE = "arn:aws:iam::123456789012:role/x"
BEDROCK = {"provider": "bedrock", "prefix": "bedrock", "region": "eu-central-1"}
NAMES = {"openai": "gpt-4.1", "bedrock": "anthropic.claude-x", "vertex_ai": "gemini-x"}
# The invalid field and its value; {address} is the attacker's server.
ATTACKS = {
    "a variable to Amazon's tokens": (
        "secrets",
        BEDROCK,
        {
            "aws_web_identity_token": "oidc/env/ASHIATO_SECRET_KEY",
            "aws_role_name": ROLE,
            "aws_session_name": "x",
            "aws_sts_endpoint": "{address}",
        },
    ),
    "an endpoint among the secrets": (
        "secrets",
        BEDROCK,
        {"aws_bedrock_runtime_endpoint": "{address}"},
    ),
    "an endpoint for tokens": ("options", BEDROCK, {"aws_sts_endpoint": "{address}"}),
    "a model to fall back to": (
        "options",
        {},
        {"fallbacks": [{"model": "openai/x", "api_base": "{address}", "api_key": None}]},
    ),
    "the same as a parameter": (
        "parameters",
        {},
        {"fallbacks": [{"model": "openai/x", "api_base": "{address}"}]},
    ),
    "an address": ("options", {}, {"api_base": "{address}"}),
    "a header": ("options", {}, {"extra_headers": {"Authorization": "x", "Host": "{address}"}}),
    "a reference": ("options", {}, {"user": "os.environ/ASHIATO_SECRET_KEY"}),
    "a file": (
        "secrets",
        {"provider": "other", "prefix": "vertex_ai"},
        {"vertex_credentials": "/etc/passwd"},
    ),
}


@pytest.fixture(autouse=True)
def secrets_around(monkeypatch):
    for name in [name for name in os.environ if name.endswith(("_API_KEY", "_API_BASE"))]:
        monkeypatch.delenv(name)
    for name in ("ASHIATO_SECRET_KEY", "OPENAI_API_KEY", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.setenv(name, f"mark-{name}")


def attack_fields(attack, address):
    """Return the field and the fields of a connection, or of a model where they go there."""
    field, fields, value = attack
    value = json.loads(json.dumps(value).replace("{address}", address))
    typed = {field: json.dumps(value)}
    if field == "secrets":  # rows of names and values
        typed = {"secrets-name": [*value], "secrets-value": [*value.values()]}
    return field, (MODEL if field == "parameters" else CONNECTION | fields) | typed


def connection_of(fields):
    prefix = fields.get("prefix", "openai")
    return ModelConnection.objects.create(
        **{"name": "saved", "prefix": prefix, "api_key": KEY} | fields
    )


async def lines(client, fields, address=TEST):
    answer = await client.post(address, fields, headers={"accept": "application/x-ndjson"})
    return "".join([part.decode() async for part in answer])


@pytest.mark.parametrize("attack", one_in(4, map(list, ATTACKS.values())), ids=ATTACKS)
def test_settings_that_change_the_host_are_not_saved(admin_client, attack):
    field, fields = attack_fields(attack, "https://evil.example")
    address = CONNECT
    if field == "parameters":
        address = ADD
        fields = fields | {"connection": connection_of({}).pk}
    errors = admin_client.post(address, fields).context["adminform"].form.errors

    assert list(errors) == [field]
    assert not LanguageModel.objects.exists()
    assert not ModelConnection.objects.filter(name="mine").exists()


@pytest.mark.parametrize(
    "attack", one_in(4, [[attack] for attack in ATTACKS.values() if attack[0] != "secrets"])
)
async def test_settings_that_change_the_host_are_not_tested_but_audited(
    admin_async_client, attack
):
    [(field, access, value)] = attack
    connection = await sync_to_async(connection_of)(access)
    name = NAMES[connection.prefix]
    async with WireServer(lambda request: fail(400, "no")) as server:
        typed = {field: json.dumps(value).replace("{address}", server.url)}
        about = {"connection": connection.pk, "model": name}
        html = await lines(admin_async_client, MODEL | about | typed)

    assert server.requests == []
    assert "mark-" not in html
    entry = await AuditEntry.objects.aget(action="model.tested")
    assert entry.detail["refused"]
    assert not await AuditEntry.objects.filter(action="model.test_ended").aexists()


@pytest.mark.parametrize("attack", one_in(4, map(list, ATTACKS.values())), ids=ATTACKS)
async def test_a_tampered_row_fails_the_run_without_any_request(agent, attack):
    field, fields, value = attack
    agent.model = "fast"
    await agent.asave()
    async with WireServer(lambda request: say("Hello.")) as server:
        value = json.loads(json.dumps(value).replace("{address}", server.url))
        connection = await sync_to_async(connection_of)(fields)
        name = f"{connection.prefix}/{NAMES[connection.prefix]}"
        row = await LanguageModel.objects.acreate(
            label="fast", model=name, connection=connection
        )
        run = await sync_to_async(runs.prepare)(query="Hello?", topic="chat.1", agent=agent)
        changed = row if field == "parameters" else connection
        setattr(changed, field, value)
        await changed.asave()  # meanwhile
        runs.launch(run)
        await runs.wait(run)
        await run.arefresh_from_db()

    assert server.requests == []
    assert run.status == "failed"
    assert run.detail.startswith("The model fast can't be used: ")
    assert "mark-" not in run.detail
    types = [event.type async for event in run.events.order_by("seq")]
    assert "error" in types


def test_settings_that_change_the_host_are_not_imported():
    for number, (field, fields, value) in enumerate(ATTACKS.values()):
        if field == "secrets":
            continue  # files hold none
        connection = {"provider": "openai", "prefix": "openai", **fields}
        model = {"connection": "c", "model": NAMES[connection["prefix"]]}
        told = model if field == "parameters" else connection
        told[field] = value
        text = (
            f"ashiato: 1\nconnections:\n  c: {json.dumps(connection)}\n"
            f"models:\n  m{number}: {json.dumps(model)}\n"
        )
        outcome = apply_file(text, TerminalUser())
        problems = [problem for thing in outcome.items for problem in thing.problems]
        message = problems[0].message
        assert "isn't allowed" in message or "Enter the value" in message
    assert not LanguageModel.objects.exists()
    assert not ModelConnection.objects.exists()


async def test_a_model_cannot_lead_the_key_of_its_connection_elsewhere():
    """Not even if the row was changed without the form."""
    async with WireServer(lambda request: fail(400, "no")) as server:
        place = server.url.removesuffix("/v1")
        connection = await sync_to_async(connection_of)(BEDROCK)
        row = LanguageModel(
            label="fast",
            model="bedrock/anthropic.claude-x",
            connection=connection,
            options={"aws_bedrock_runtime_endpoint": place, "aws_role_name": ROLE},
        )

        assert model_setups.model_settings(row).litellm_options == {
            "aws_region_name": "eu-central-1"
        }


async def test_a_test_is_audited_with_its_destination_and_result(
    admin_async_client, administrator
):
    async with WireServer(model_with("tools", "vision", "schema")) as server:
        about = {"provider": "compatible", "base_url": server.url}
        connection = await sync_to_async(connection_of)(about)
        await lines(admin_async_client, MODEL | {"connection": connection.pk})
    async with WireServer([fail(401, f"Incorrect API key provided: {KEY}")]) as other:
        connection.base_url = other.url
        await connection.asave()
        await lines(admin_async_client, MODEL | {"connection": connection.pk})

    entries = [entry async for entry in AuditEntry.objects.order_by("number")]
    told = [(entry.action, entry.detail) for entry in entries if "model." in entry.action]
    where = {"model": "openai/gpt-4.1", "provider": "compatible", "address": server.url}
    assert told[:2] == [
        ("model.tested", where),
        ("model.test_ended", {**where, "outcome": "answered"}),
    ]
    assert told[2] == ("model.tested", {**where, "address": other.url})
    assert "Incorrect API key provided: ***" in told[3][1]["outcome"]
    assert KEY not in str(told)
    assert {entry.person.user_id async for entry in _with_people()} == {administrator.pk}


def _with_people():
    return AuditEntry.objects.filter(action__startswith="model.").select_related("person")


async def test_an_abandoned_test_is_audited_as_cancelled(administrator):
    async with WireServer(lambda request: say("Hello there.", chunks=6, delay=0.2)) as server:
        about = {"provider": "compatible", "base_url": server.url}
        row = unsaved_model("fast", "openai/x", api_key=KEY, **about)
        async with aclosing(model_tester.run_probe(administrator, row)) as pieces:
            await anext(pieces)

    ended = await AuditEntry.objects.aget(action="model.test_ended")
    assert ended.detail["outcome"] == "cancelled"


# Providers


@pytest.mark.parametrize(
    "model", one_in(3, ["nobody/x", "gigachat/x", "openai/https://evil.example"])
)
def test_a_fallback_of_an_unknown_provider_is_not_saved(admin_client, model):
    fields = MODEL | {"connection": connection_of({}).pk, "fallbacks": model}
    errors = admin_client.post(ADD, fields).context["adminform"].form.errors

    assert "can't be used" in errors["fallbacks"][0]


@pytest.mark.parametrize("field", ["model", "fallback_models"])
def test_an_agent_with_a_model_of_an_unknown_provider_is_not_saved(agent, field):
    form = modelform_factory(Agent, AgentForm, fields=[field])
    errors = form({field: "nobody/x"}, instance=agent).errors
    assert "Unknown provider: nobody." in str(errors)

    assert not form({field: "mistral/x"}, instance=agent).errors


def test_a_model_of_an_unknown_provider_is_not_imported():
    models = "connections:\n  a: {provider: other, prefix: nobody}\n"
    agents = "agents:\n  helper: {model: nobody/x}\n"
    for text in (models, agents):
        outcome = preview_file(f"ashiato: 1\n{text}", TerminalUser())
        problems = [problem.message for thing in outcome.items for problem in thing.problems]
        assert "Unknown provider: nobody." in problems[0]


def test_an_unknown_provider_in_the_environment_stops_the_start(monkeypatch, settings):
    monkeypatch.setattr(settings.ENVIRONMENT, "model", "nobody/x")
    with pytest.raises(CommandError, match="ASHIATO_MODEL: .*Unknown provider: nobody"):
        check_model()


async def test_a_tampered_model_name_is_rejected_at_run_time(agent):
    await Agent.objects.aupdate(model="openai/https://evil.example")
    await agent.arefresh_from_db()
    with pytest.raises(Exception, match="can't be used"):
        await run_question("Hello?", agent=agent)
