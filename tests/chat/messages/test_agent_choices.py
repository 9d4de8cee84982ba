"""The agents that the composer and a new chat offer."""

import pytest
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError

from agents.catalog.tools.tool_factory import usable_names
from agents.management.commands import seed_demo
from agents.models import Agent, Run, ToolRegistration
from chat.messages import agent_choices
from chat.models import ChatSession, Message

pytestmark = pytest.mark.django_db


@pytest.fixture
def agents():
    seed_demo.make_agents()
    return {agent.name: agent for agent in Agent.objects.all()}


def offered(person):
    return {choice.name: choice for choice in agent_choices.list_agents(person)}


def use(person, agent, at):
    chat = ChatSession.objects.create(user=person, title=f"Chat {at}")
    run = Run.objects.create(
        user=person, topic=chat.topic, agent=agent, agent_name=agent.name, status="completed"
    )
    Message.objects.create(session=chat, author=person, run=run, text="?", client_id=str(at))
    return chat


def test_the_last_used_agents_come_first_and_the_default_stays_chosen(person, stranger, agents):
    for at, name in enumerate(["planner", "careful", "planner", "librarian"]):
        use(person, agents[name], at)
    use(stranger, agents["panel"], 9)

    choices = agent_choices.list_agents(person)

    assert [one.name for one in choices][:4] == ["librarian", "planner", "careful", "helper"]
    assert agent_choices.selected(choices) == "helper"


def test_a_chat_keeps_the_agent_that_answered_last(person, agents):
    chat = use(person, agents["planner"], 1)

    assert agent_choices.selected(agent_choices.list_agents(person), chat) == "planner"


def test_a_card_says_what_an_agent_works_with(person, agents):
    tool_count = len({*usable_names()} - {"ask_person"})

    found = offered(person)

    assert found["helper"].abilities == f"{tool_count} tools"
    assert found["librarian"].abilities == "read_document, search"
    assert found["lead"].abilities == "3 agents"
    assert found["panel"].abilities == "2 agents"
    icons = {name: choice.icon for name, choice in found.items()}
    assert (icons["librarian"], icons["panel"]) == ("book", "scales")
    assert len(set(icons.values())) == len(icons)


def test_an_agent_says_if_a_call_or_its_plan_waits_for_approval(person, agents):
    assert [one.name for one in offered(person).values() if one.needs_approval] == ["careful"]

    agents["librarian"].links.update(approval="always")
    Agent.objects.filter(name="planner").update(shows_plan=True)

    waiting = {one.name for one in offered(person).values() if one.needs_approval}
    assert waiting == {"careful", "librarian", "planner"}


def test_tools_and_agents_a_user_cannot_use_are_not_on_the_card(person, agents):
    insiders = Group.objects.create(name="insiders")
    ToolRegistration.objects.get(name="database").groups.add(insiders)
    agents["reporter"].groups.add(insiders)
    tool_count = len({*usable_names()} - {"ask_person"})

    found = offered(person)

    assert found["helper"].abilities == f"{tool_count - 1} tools"
    assert found["lead"].abilities == "2 agents"
    assert "reporter" not in found
    assert all("products" not in example for example in found["helper"].examples)


def test_an_agent_without_questions_gets_those_of_its_tools(person, agents):
    found = offered(person)

    assert found["helper"].examples[0] == "What is 12.5% of 3480?"
    assert len(found["helper"].examples) == 3
    assert found["planner"].examples[0].startswith("Compare this year's best month")


def test_own_questions_are_shown_as_they_were_entered(person, agents):
    agents["helper"].example_questions = "Wie viel ist 2 + 2?\n\n  And 3?  "
    agents["helper"].save()

    assert offered(person)["helper"].examples == ("Wie viel ist 2 + 2?", "And 3?")


def test_a_new_chat_has_the_examples_of_the_chosen_agent(person_client, agents):
    page = person_client.get("/?agent=librarian").text

    assert page.count('class="agent-option"') == len(agents)
    assert '<option value="librarian" title="Answers only' in page
    hidden = page.split('data-examples-of="helper"')[1].split(">")[0]
    assert hidden.endswith(" hidden")
    assert "Try asking librarian" in page


@pytest.mark.parametrize("name", ["nobody", "reporter", ""])
def test_an_agent_that_is_not_offered_is_not_chosen_by_a_link(person_client, agents, name):
    Agent.objects.filter(name="reporter").update(enabled=False)

    page = person_client.get("/", {"agent": name}).text

    option = page.split('<option value="helper"')[1].split(">")[0]
    assert option.endswith(" selected")


def test_menus_get_the_agents_as_json(person_client, agents):
    found = person_client.get("/chat/choices/").json()

    assert [agent["name"] for agent in found["agents"]][0] == "helper"
    assert found["agents"][1]["needs_approval"]


@pytest.mark.parametrize(
    ("text", "field"),
    [("\n".join("1234567"), "Enter 6 questions or fewer"), ("x" * 301, "Line 1 is too long")],
)
def test_too_many_or_too_long_questions_are_rejected(agents, text, field):
    agents["helper"].example_questions = text

    with pytest.raises(ValidationError, match=field):
        agents["helper"].full_clean()
