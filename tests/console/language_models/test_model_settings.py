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
from agents.console.agent_admin.agents import AgentForm
from agents.console.language_models import model_tester
from agents.console.system.config_files.importer import apply_file, preview_file
from agents.console.system.config_files.permissions import TerminalUser
from agents.management.commands.serve import check_model
from agents.models import Agent, AuditEntry, LanguageModel
from tests.conftest import run_question
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
ROLE = "arn:aws:iam::123456789012:role/x"
BEDROCK = {"provider": "bedrock", "model": "anthropic.claude-x", "region": "eu-central-1"}
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
        {"provider": "other", "model": "vertex_ai/gemini-x"},
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
    field, fields, value = attack
    return field, FIELDS | fields | {field: json.dumps(value).replace("{address}", address)}


async def lines(client, fields, address=TEST):
    answer = await client.post(address, fields, headers={"accept": "application/x-ndjson"})
    return "".join([part.decode() async for part in answer])


@pytest.mark.parametrize("attack", one_in(4, map(list, ATTACKS.values())), ids=ATTACKS)
def test_settings_that_change_the_host_are_not_saved(admin_client, attack):
    field, fields = attack_fields(attack, "https://evil.example")
    errors = admin_client.post(ADD, fields).context["adminform"].form.errors

    assert list(errors) == [field]
    assert not LanguageModel.objects.exists()


@pytest.mark.parametrize("attack", one_in(4, map(list, ATTACKS.values())), ids=ATTACKS)
async def test_settings_that_change_the_host_are_not_tested_but_audited(
    admin_async_client, attack
):
    async with WireServer(lambda request: fail(400, "no")) as server:
        _, fields = attack_fields(attack, server.url)
        html = await lines(admin_async_client, fields)

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
        about = {"model": f"bedrock/{fields['model']}"} if fields is BEDROCK else fields
        given = {"model": "openai/gpt-4.1", "api_key": KEY, **about}
        value = json.loads(json.dumps(value).replace("{address}", server.url))
        row = await LanguageModel.objects.acreate(label="fast", **given)
        run = await sync_to_async(runs.prepare)(query="Hello?", topic="chat.1", agent=agent)
        setattr(row, field, value)
        await row.asave()  # meanwhile
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
        told = {"provider": "openai", "model": "gpt-4.1", **fields, field: value}
        text = f"ashiato: 1\nmodels:\n  m{number}: {json.dumps(told)}\n"
        outcome = apply_file(text, TerminalUser())
        (problem,) = [problem for thing in outcome.items for problem in thing.problems]
        assert "isn't allowed" in problem.message or "Enter the value" in problem.message
    assert not LanguageModel.objects.exists()


MOVED = {
    "the region": {"region": "us-east-1"},
    "an endpoint": {"options": '{"aws_bedrock_runtime_endpoint": "{address}"}'},
    "a role": {"options": json.dumps({"aws_role_name": ROLE})},
    "the region in its name": {"model": "bedrock/us-east-1/anthropic.claude-x"},
    "the provider": {"provider": "openai", "model": "gpt-4.1", "region": ""},
    "the address": {
        "provider": "compatible",
        "model": "openai/x",
        "base_url": "{address}",
        "region": "",
    },
}


@pytest.mark.parametrize("change", one_in(4, MOVED.values()), ids=MOVED)
async def test_a_saved_key_is_tested_only_at_its_own_url(admin_async_client, change):
    about = {"provider": "bedrock", "model": "bedrock/anthropic.claude-x"}
    row = await LanguageModel.objects.acreate(
        label="fast", api_key=KEY, region="eu-central-1", **about
    )
    async with WireServer(lambda request: fail(400, "no")) as server:
        place = server.url.removesuffix("/v1")
        moved = {name: value.replace("{address}", place) for name, value in change.items()}
        fields = FIELDS | BEDROCK | {"model": row.model, "api_key": ""} | moved
        at = reverse("admin:agents_languagemodel_test", args=[row.pk])
        html = await lines(admin_async_client, fields, at)

    assert "Enter it again" in html
    assert server.requests == []


async def test_a_test_is_audited_with_its_destination_and_result(
    admin_async_client, administrator
):
    async with WireServer(model_with("tools", "vision", "schema")) as server:
        about = {"provider": "compatible", "base_url": server.url}
        await lines(admin_async_client, FIELDS | about)
    async with WireServer([fail(401, f"Incorrect API key provided: {KEY}")]) as other:
        await lines(admin_async_client, FIELDS | about | {"base_url": other.url})

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
        row = LanguageModel(label="fast", model="openai/x", api_key=KEY, **about)
        async with aclosing(model_tester.run_probe(administrator, row)) as pieces:
            await anext(pieces)

    ended = await AuditEntry.objects.aget(action="model.test_ended")
    assert ended.detail["outcome"] == "cancelled"


# Providers


@pytest.mark.parametrize(
    "model", one_in(3, ["nobody/x", "gigachat/x", "openai/https://evil.example"])
)
def test_a_model_of_an_unknown_provider_is_not_saved(admin_client, model):
    fields = FIELDS | {"provider": "other", "model": model}
    errors = admin_client.post(ADD, fields).context["adminform"].form.errors

    assert "model" in errors
    fields = FIELDS | {"fallbacks": model}
    errors = admin_client.post(ADD, fields).context["adminform"].form.errors
    assert "can't be used" in errors["fallbacks"][0]


@pytest.mark.parametrize("field", ["model", "fallback_models"])
def test_an_agent_with_a_model_of_an_unknown_provider_is_not_saved(agent, field):
    form = modelform_factory(Agent, AgentForm, fields=[field])
    errors = form({field: "nobody/x"}, instance=agent).errors
    assert "Unknown provider: nobody." in str(errors)

    assert not form({field: "mistral/x"}, instance=agent).errors


def test_a_model_of_an_unknown_provider_is_not_imported():
    models = "models:\n  a: {provider: other, model: nobody/x}\n"
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
