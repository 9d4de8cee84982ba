"""Model, effort and temperature of a chat."""

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group

from agents import runs
from agents.catalog import agent_spec
from agents.catalog.agent_factory import config
from agents.catalog.language_models import model_choices
from agents.models import Agent, Run
from chat import messages
from chat.errors import MessageRejected
from chat.messages import agent_choices, run_factory, run_options
from chat.messages.run_options import RunOptions
from chat.models import ChatSession, Message
from tests.language_models import make_model
from tests.wire import WireServer, say

pytestmark = pytest.mark.django_db
KEY = "sk-of-this-row-0123456789"


def create_model(label="fast", model="openai/gpt-4.1", **columns):
    given = {"provider": "openai", "model": model, "api_key": KEY}
    return make_model(label, **given | columns)


@pytest.fixture
def models(agent):
    return create_model(), create_model("deep", "openai/gpt-5")


@pytest.fixture
def chat(person):
    return ChatSession.objects.create(user=person, title="Chat")


@pytest.mark.parametrize("values", [None, {}, {"text": "Hello", "agent": "helper"}])
def test_a_message_without_options_keeps_the_chats(values):
    assert run_options.parse(values) is None


def test_choices_are_read_from_a_form():
    values = {"model": "fast", "effort": "", "temperature": "0.25"}

    assert run_options.parse(values) == RunOptions(model="fast", temperature=0.25)
    assert run_options.parse({"model": ""}) == RunOptions()


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"effort": "enormous"}, "invalid request"),
        ({"temperature": "2.5"}, "between 0 and 2"),
        ({"temperature": "-1"}, "between 0 and 2"),
        ({"temperature": "warm"}, "between 0 and 2"),
        ({"temperature": "nan"}, "between 0 and 2"),
        ({"temperature": True}, "between 0 and 2"),
        ({"temperature": [1]}, "between 0 and 2"),
    ],
)
def test_an_invalid_option_is_rejected_with_a_message(values, sentence):
    with pytest.raises(MessageRejected, match=sentence):
        run_options.parse(values)


def test_only_what_the_agent_allows_is_used(agent, models, person):
    chosen = RunOptions(model="fast", temperature=0.5)

    assert run_options.overrides(agent, chosen, person) == {"model": "fast", "temperature": 0.5}
    agent.allows_parameter_choice = False
    assert run_options.overrides(agent, chosen, person) == {"model": "fast"}
    agent.allows_model_choice = False
    assert run_options.overrides(agent, chosen, person) == {}


def test_what_the_model_does_not_accept_is_not_recorded(agent, models, person):
    both = {"effort": "high", "temperature": 0.5}

    fast = run_options.overrides(agent, RunOptions(model="fast", **both), person)
    deep = run_options.overrides(agent, RunOptions(model="deep", **both), person)

    assert fast == {"model": "fast", "temperature": 0.5}
    assert deep == {"model": "deep", "effort": "high"}
    assert run_options.overrides(agent, RunOptions(**both), person) == {}  # the demo model


@pytest.mark.parametrize(
    "name", ["gone", "openai/gpt-5-pro", "openai/gpt-4.1", "off", "keyless"]
)
def test_a_model_that_is_not_offered_cannot_be_chosen(agent, models, person, name):
    create_model("off", enabled=False)
    create_model("keyless", api_key="")

    with pytest.raises(
        MessageRejected, match=f"The model {name} is no longer available to you"
    ):
        run_options.overrides(agent, RunOptions(model=name), person)


def test_a_model_of_a_group_is_only_for_its_members(agent, models, person):
    group = Group.objects.create(name="insiders")
    models[0].groups.add(group)

    assert model_choices.find_model("fast", person) is None
    person.groups.add(group)
    assert model_choices.find_model("fast", person).name == "fast"


def test_a_chat_keeps_its_model_and_the_run_has_it(chat, person, models):
    options = {"model": "deep", "effort": "high"}
    first = messages.save(chat, person, "Hello", "a", options=options)

    assert (first.run.model, first.run.overrides) == ("deep", options)
    chat.refresh_from_db()
    assert chat.options == options
    first.run.status = "completed"
    first.run.save()
    assert messages.save(chat, person, "Again", "b").run.model == "deep"


def test_a_new_chat_starts_with_what_was_posted(person, models):
    message = messages.save(None, person, "Hello", "a", options={"model": "fast"})

    assert message.session.options == {"model": "fast"}
    assert message.run.model == "fast"


def test_nothing_is_saved_if_the_model_was_removed(chat, person, models):
    with pytest.raises(MessageRejected, match="The model gone is no longer available"):
        messages.save(chat, person, "Hello", "a", options={"model": "gone"})

    assert not Message.objects.exists()
    assert ChatSession.objects.get().options == {}


def test_an_agent_with_its_own_model_ignores_the_chats(chat, person, models):
    chat.options = {"model": "fast"}
    chat.save()
    Agent.objects.create(name="fixed", model="deep")

    assert messages.save(chat, person, "Hello", "a", "fixed").run.model == "deep"


def test_a_queued_message_keeps_what_was_chosen_with_it(chat, person, models):
    first = messages.save(chat, person, "One", "a")
    queued = messages.save(chat, person, "Two", "b", options={"model": "fast"})
    messages.save(chat, person, "Three", "c", options={"model": "deep"})
    assert queued.is_queued

    Run.objects.filter(pk=first.run.pk).update(status="completed")
    started = messages.dispatching._claim_next(chat)

    assert (started.text, started.run.model) == ("Two", "fast")


def test_a_queued_message_with_a_removed_model_says_why_it_waits(chat, person, models):
    messages.save(chat, person, "One", "a")
    queued = messages.save(chat, person, "Two", "b", options={"model": "fast"})
    models[0].delete()

    assert "The model fast is no longer available" in run_factory.blocked_reason(queued)


def test_a_continued_plan_keeps_the_model_it_had(agent, models, person):
    about = {"query": "Plan", "topic": "chat.1", "user": person, "agent": agent}
    stopped = runs.prepare(**about, overrides={"model": "deep", "effort": "low"})
    Run.objects.filter(pk=stopped.pk).update(status="stopped")

    goes_on = runs.prepare_continuation(stopped, topic="chat.1", user=person)

    assert (goes_on.model, goes_on.overrides["effort"]) == ("deep", "low")


@pytest.mark.parametrize("policy", Agent.PersonalData)
def test_the_chosen_model_gets_no_more_personal_data_than_the_agents(
    agent, models, person, policy
):
    agent.personal_data = policy
    agent.save()
    about = {"query": "Hello", "topic": "chat.1", "user": person, "agent": agent}
    run = runs.prepare(**about, overrides={"model": "deep", "effort": "high"})

    [parts] = config.load_team(run)

    planner = parts.planners[0]
    assert planner.model == "deep"
    assert planner.parameters["reasoning_effort"] == "high"
    assert (planner.pseudonymizer is not None) == (policy == Agent.PersonalData.HIDDEN)


def test_a_sub_agent_keeps_its_own_settings(agent, models, person):
    other = Agent.objects.create(name="other", model="deep")
    agent.handoffs.add(other)
    about = {"query": "Hello", "topic": "chat.1", "user": person, "agent": agent}
    run = runs.prepare(**about, overrides={"model": "fast", "temperature": 0.1})

    first, second = config.load_team(run)

    assert first.planners[0].parameters["temperature"] == 0.1
    assert (second.planners[0].model, second.agent.temperature) == ("deep", None)


def test_a_draft_hands_off_only_to_agents_that_its_tester_can_chat_with(agent, person):
    closed = Agent.objects.create(name="closed")
    closed.groups.add(Group.objects.create(name="Finance"))
    draft = Agent(name="draft")
    spec = agent_spec.build_spec(draft, [], {"handoffs": [agent, closed]})
    run = runs.prepare_draft_run(draft, spec, query="Hello", topic="trial.1", user=person)

    assert [parts.agent.name for parts in config.load_team(run)] == ["draft", agent.name]


def test_the_page_offers_models_and_says_if_the_chats_was_removed(person_client, chat, models):
    page = person_client.get(f"/chat/{chat.pk}/").text
    assert '<option value="deep">' in page
    assert "$2 / $8 per 1M" in page
    assert "1M context" in page

    chat.options = {"model": "gone"}
    chat.save()

    page = person_client.get(f"/chat/{chat.pk}/").text
    assert "The model gone is no longer available to you." in page


def test_without_anything_to_choose_there_is_no_picker(person_client, agent):
    assert 'id="agent-panel"' not in person_client.get("/").text


def test_menus_get_the_models_as_json(person_client, models):
    found = person_client.get("/chat/choices/").json()["models"]

    assert [model["name"] for model in found] == ["fast", "deep"]
    assert found[1]["takes_effort"]


def test_the_models_of_the_agents_are_described_on_their_cards(person, models):
    Agent.objects.create(name="own", model="deep")

    own = next(one for one in agent_choices.list_agents(person) if one.name == "own")

    assert (own.label, own.model.takes_effort) == ("deep", True)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("run_executor")
async def test_the_request_has_the_users_options(agent, person):
    async with WireServer([say("Hello.")]) as server:
        await sync_to_async(create_model)(base_url=server.url, provider="compatible")
        options = {"model": "fast", "effort": "", "temperature": "0.2"}
        message = await messages.submit(None, person, "Hello?", "a", options=options)
        await runs.wait(message.run)

    body = server.requests[0].body
    assert (body["model"], body["temperature"]) == ("gpt-4.1", 0.2)
    run = await Run.objects.aget()
    assert (run.status, run.model) == ("completed", "fast")
