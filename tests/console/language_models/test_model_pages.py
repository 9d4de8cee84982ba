"""Models in the console: providers, facts, tests that are kept, usage and agents."""

import json
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.contrib.messages import get_messages
from django.urls import reverse
from django.utils import timezone

from agents.catalog.language_models import model_setups, planner_factory
from agents.console.language_models import model_facts, model_state, model_usage
from agents.console.language_models.model_providers import CARDS, card_of, short_name
from agents.models import Agent, AgentStep, AuditEntry, LanguageModel, ModelConnection, Run
from tests.conftest import as_staff
from tests.language_models import make_model
from tests.llm.capability_server import model_with
from tests.run_usage import record_usage
from tests.wire import fail, models, serve_in_thread

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("agent")]
LIST = reverse("admin:agents_languagemodel_changelist")
ADD = reverse("admin:agents_languagemodel_add")
KEY = "sk-of-this-row-0123456789"


@pytest.fixture
def row():
    return make_model(label="fast", model="openai/gpt-4.1", api_key=KEY)


def page(row):
    return reverse("admin:agents_languagemodel_change", args=[row.pk])


def use(row):
    return reverse("admin:agents_languagemodel_use", args=[row.pk])


def connect(preset, url=""):
    card = CARDS[preset]
    access = {"provider": card.provider, "prefix": card.prefix, "base_url": url}
    connection, _is_new = ModelConnection.objects.get_or_create(
        name=preset, defaults={**access, "api_key": KEY}
    )
    return connection


def add(client, connection, **fields):
    return client.post(ADD, {"connection": connection.pk, "enabled": "on"} | fields)


def make_run(row, **values):
    known = {"status": "completed", "seconds": 2.0, "cost": 0.25, "prompt_tokens": 900}
    at = timezone.now() - timedelta(hours=1)
    run = Run.objects.create(
        agent_name="helper",
        topic=f"chat.{Run.objects.count()}",
        model=row.label,
        query="?",
        ended_at=at,
        **known | values,
    )
    Run.objects.filter(pk=run.pk).update(started_at=at)
    return record_usage(run)


def read_token(answer):
    """Return the result of a streamed test, as the page puts it into the form."""

    async def read():
        return b"".join([piece async for piece in answer.streaming_content])

    lines = async_to_sync(read)().decode().splitlines()
    return next(found for line in lines if (found := json.loads(line).get("tested")))


@pytest.mark.parametrize(
    ("preset", "typed", "name"),
    [
        ("mistral", "mistral-large-4", "mistral/mistral-large-4"),
        ("openrouter", "anthropic/claude-x", "openrouter/anthropic/claude-x"),
        ("lm_studio", "qwen", "lm_studio/qwen"),
        ("anthropic", "claude-x", "anthropic/claude-x"),
    ],
)
def test_a_name_gets_the_prefix_of_its_provider(admin_client, preset, typed, name):
    answer = add(admin_client, connect(preset, CARDS[preset].url), model=typed)
    row = LanguageModel.objects.get()

    assert answer.status_code == 302
    assert row.model == name
    assert (card_of(row.connection).key, short_name(row)) == (preset, typed)
    html = admin_client.get(page(row)).text
    assert f'value="{typed}"' in html
    assert KEY not in html


def test_a_label_is_proposed_and_never_taken_twice(admin_client):
    for label in ("claude-x", "claude-x-2"):
        add(admin_client, connect("anthropic"), model="claude-x")
        assert LanguageModel.objects.filter(label=label).exists()


def test_the_price_list_says_what_a_model_costs_and_can_do(admin_client):
    told = admin_client.get(
        reverse("admin:agents_languagemodel_facts"),
        {"connection": connect("openai").pk, "model": "gpt-4.1"},
    ).json()

    assert (told["inputPrice"], told["outputPrice"], told["label"]) == (2.0, 8.0, "gpt-4.1")
    assert told["window"] > 1_000_000
    assert told["abilities"]["tools"] is True
    unknown = model_facts.look_up("openai/nobody-knows-it")
    assert (unknown.is_listed, unknown.input_price) == (False, None)


def test_abilities_can_be_overridden(admin_client):
    add(admin_client, connect("openai"), model="gpt-4.1", can_audio="yes", can_tools="no")
    row = LanguageModel.objects.get()

    assert row.abilities == {"tools": False, "audio": True}
    setup = model_setups.find_setup(row.label)
    assert "audio" in planner_factory._senses(setup)
    found = model_facts.abilities_of(row)
    assert (found["tools"], found["images"]) == (False, True)


def test_a_tested_model_is_working_once_it_is_saved(admin_client, administrator):
    with serve_in_thread(model_with("tools"), pages=models("small")) as server:
        connection = connect("compatible", server.url)
        form = {"model": "small"}
        sent = {"connection": connection.pk} | form
        test = reverse("admin:agents_languagemodel_test_new")
        pieces = admin_client.post(test, sent, headers={"accept": "application/x-ndjson"})
        token = read_token(pieces)
        tested = add(admin_client, connection, tested=token, **form)
        untested = add(admin_client, connection, tested=token, model="other")
    row, other = LanguageModel.objects.order_by("pk")

    assert row.last_test["parts"] == {"tools": True, "vision": False, "schema": False}
    assert model_state.state_of(row).name == "working"
    assert model_state.state_of(other).name == "untested"
    levels = [
        [message.level_tag for message in get_messages(answer.wsgi_request)][-1]
        for answer in (tested, untested)
    ]
    assert levels == ["success", "warning"]  # only what has answered is connected


def test_a_failed_test_of_a_saved_model_is_its_state(admin_client):
    with serve_in_thread(lambda request: fail(401, "No such key.")) as server:
        connection = connect("compatible", server.url)
        add(admin_client, connection, model="small")
        row = LanguageModel.objects.get()
        test = reverse("admin:agents_languagemodel_test", args=[row.pk])
        admin_client.post(test, {"connection": connection.pk, "model": "small"})
    row.refresh_from_db()

    state = model_state.state_of(row)
    assert state.name == "failing"
    assert "No such key." in state.reason
    assert "Failing" in admin_client.get(LIST).text


def test_an_agent_is_switched_with_a_version_and_an_audit_entry(admin_client, row, agent):
    answer = admin_client.post(use(row), {"agent": agent.pk}, follow=True)
    agent.refresh_from_db()

    assert "Switched helper to fast." in answer.text
    assert agent.model == "fast"
    assert agent.versions.first().snapshot["model"] == "fast"
    entry = AuditEntry.objects.filter(action="console.changed").latest("number")
    assert entry.detail["changes"] == {"model": ["", "fast"]}


def test_one_model_is_the_default_of_agents_without_one(admin_client, row, agent):
    other = make_model(label="old", model="openai/o1", is_default=True)
    admin_client.post(use(row), {"default": "1"})
    other.refresh_from_db()

    assert not other.is_default
    assert model_setups.model_name(agent) == "fast"
    assert model_setups.model_names(agent) == ["fast"]
    LanguageModel.objects.filter(pk=row.pk).update(enabled=False)
    assert model_setups.model_name(agent) == "demo"


def test_only_who_can_change_agents_switches_them(person, row, agent):
    client = as_staff(person, "change_languagemodel", "view_languagemodel")

    assert client.post(use(row), {"agent": agent.pk}).status_code == 403
    assert "Switch to it" not in client.get(page(row)).text
    assert client.get(ADD).status_code == 403
    person.user_permissions.clear()
    facts = reverse("admin:agents_languagemodel_facts")
    assert {client.get(facts).status_code, client.post(use(row)).status_code} == {403}


def test_the_page_has_usage_errors_and_agents_of_the_last_days(admin_client, row, agent):
    Agent.objects.filter(pk=agent.pk).update(model="fast")
    run = make_run(row)
    make_run(row, status="failed", detail="Ask mika.sato@example.com.", cost=None)
    began = timezone.now() - timedelta(minutes=5)
    for number in range(1, 5):
        AgentStep.objects.create(
            run=run,
            number=number,
            kind="thought",
            status="done",
            started_at=began,
            ended_at=began + timedelta(seconds=number),
        )
    answer = admin_client.get(page(row))
    html = answer.text

    totals, calls = answer.context["totals"], answer.context["calls"]
    assert (totals.runs, totals.failed, totals.tokens, totals.cost) == (2, 1, 1800, 0.25)
    assert (calls.calls, calls.p50, calls.p95) == (4, 2_000, 4_000)
    assert "mika.sato" not in html
    assert "‹email›" in html
    assert [one.agent.name for one in answer.context["uses"]] == ["helper"]
    assert "used by" in admin_client.get(LIST).text.lower()


def test_a_call_that_another_model_answered_is_an_error(row):
    run = make_run(row)
    now = timezone.now()
    note = {"kind": "model_fallback", "from": "fast", "to": "slow", "message": "It is busy."}
    AgentStep.objects.create(
        run=run,
        number=1,
        kind="answer",
        status="done",
        started_at=now,
        ended_at=now,
        notes=[note],
    )
    found = model_usage.load_calls(row, Run.objects.all())

    assert (found.errors, found.fallbacks) == (1, 1)
    assert found.last_errors[0].sentence == "It is busy."


def test_several_models_are_disabled_at_once(admin_client, row):
    picked = {"action": "disable", "_selected_action": [row.pk], "index": 0}
    answer = admin_client.post(LIST, picked, follow=True)
    row.refresh_from_db()

    assert not row.enabled
    assert "1 model disabled." in answer.text
    assert AuditEntry.objects.filter(subject=f"languagemodel:{row.pk}").exists()


def test_an_empty_list_has_a_button(admin_client):
    html = admin_client.get(LIST).text

    assert "No models connected" in html
    assert reverse("admin:agents_modelconnection_add") in html
