"""The beginning of prompts stays the same, byte by byte: providers charge less for it."""

import json
from datetime import timedelta
from os.path import commonprefix

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agents.accounts.models import Profile
from agents.engine.testing import Says, ScriptedModel
from agents.memory import memories
from agents.models import Agent, AgentTool, Memory, ToolRegistration
from agents.models.catalog.agent_tools import replace_tools
from tests.conftest import run_question

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("run_executor"),
]


@pytest.fixture(params=["native", "react"])
def model(request, scripted, agent):
    agent.dialect, agent.instructions = request.param, "You are a careful helper."
    agent.save()
    for name in ("calculator", "database", "search"):
        tool = ToolRegistration.objects.get(name=name)
        AgentTool.objects.get_or_create(agent=agent, tool=tool)
    answers = [Says(answer=f"Answer {n}.") for n in range(4)]
    return scripted(model=ScriptedModel(*answers, dialect=request.param))


def rendered(request):
    """Return a request as a provider reads it: tools first, then messages in order."""
    tools = json.dumps(request["tools"], ensure_ascii=False)
    return tools + "\n".join(json.dumps(m, ensure_ascii=False) for m in request["messages"])


def with_profile(user, text):
    Profile.objects.create(user=user, about_me=text, has_instructions=True)


async def ask(question, user, history=(), topic="chat.1"):
    return await run_question(question, user=user, topic=topic, history=history)


async def test_the_next_turn_repeats_everything_up_to_the_new_question(model, person):
    await sync_to_async(_remember)(person, "Likes tea.")
    await ask("Which tea?", person)
    turn = [{"role": "user", "content": "Which tea?"}, {"role": "assistant", "content": "A."}]
    await ask("Which coffee?", person, turn)
    await sync_to_async(_remember)(person, "Likes coffee.")
    await ask("Which coffee now?", person, turn)

    first, second, third = map(rendered, model.requests)
    system = rendered({**model.requests[0], "messages": model.requests[0]["messages"][:1]})
    assert first.startswith(system)
    assert second.startswith(system)
    history = rendered({**model.requests[1], "messages": model.requests[1]["messages"][:3]})
    assert third.startswith(history)
    assert "Likes coffee." in third
    assert "Likes" not in system


async def test_another_day_has_the_same_prompt(model, person, monkeypatch):
    await ask("What is the time?", person)
    later = timezone.now() + timedelta(days=40)
    monkeypatch.setattr(timezone, "now", lambda: later)
    await ask("What is the time?", person, topic="chat.2")

    first, second = map(rendered, model.requests)
    assert first == second


async def test_two_people_share_instructions_and_tools(model, person, stranger, agent):
    await sync_to_async(with_profile)(person, "I am Ada.")
    await sync_to_async(with_profile)(stranger, "I am Eve.")
    await ask("Hello", person)
    await ask("Hello", stranger, topic="chat.2")

    first, second = map(rendered, model.requests)
    shared = commonprefix([first, second])
    assert "You are a careful helper." in shared
    assert "calculator" in shared
    assert first[len(shared) :].startswith("Ada")


async def test_tools_are_in_the_order_of_their_names(model, person, agent):
    await ask("Hello", person)
    await Agent.objects.aupdate(description="Another")
    links = await sync_to_async(list)(agent.links.select_related("tool").order_by("-pk"))
    await sync_to_async(replace_tools)(agent, links)
    await ask("Hello", person, topic="chat.2")

    assert rendered(model.requests[0]) == rendered(model.requests[1])


def _remember(user, text):
    memories.save(Memory(user=user, text=text, kind="preference"))
