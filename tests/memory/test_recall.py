"""What agents get of a user's memory: what fits, what holds now, and never another user's."""

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group

from agents.accounts.users import profiles
from agents.models import (
    Agent,
    GuardrailPattern,
    HiddenTopic,
    Membership,
    Memory,
    MemoryExclusion,
)

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_fitting_fact_is_recalled_as_quoted_data(remember, instructions):
    await sync_to_async(remember)("My cat is called Mikan")
    await sync_to_async(remember)("Quarterly report due in May")

    text = await instructions("What is the name of my cat?")

    own, _, part = text.partition("\n\n<user_memory>\n")
    assert '- "My cat is called Mikan" (since ' in part
    assert "report" not in part
    assert part.endswith("</user_memory>")
    assert "user_memory" not in own


async def test_nothing_is_recalled_for_other_questions(remember, instructions):
    await sync_to_async(remember)("My cat is called Mikan")

    assert "user_memory" not in await instructions("6 * 7")


async def test_preferences_are_always_there(remember, instructions):
    await sync_to_async(remember)("Answer in haiku", kind=Memory.Kind.PREFERENCE)

    assert "Answer in haiku" in await instructions("6 * 7")


async def test_japanese_is_recalled_by_its_words(remember, instructions):
    await sync_to_async(remember)("有給休暇は毎年八月に取ります")

    assert "八月" in await instructions("有給休暇の予定を教えて")


async def test_only_the_current_fact_is_recalled(remember, instructions):
    await sync_to_async(remember)("My home is in Tokyo", subject="home city")
    await sync_to_async(remember)("My home is in Kyoto", subject="home city")

    text = await instructions("Where is my home?")

    assert "Kyoto" in text
    assert "Tokyo" not in text


async def test_a_correction_in_a_chat_replaces_the_fact(instructions, person):
    await instructions("Remember that I live in Tokyo", topic="chat.1")
    await instructions("Remember that I live in Kyoto", topic="chat.2")

    current = [m.text async for m in Memory.objects.filter(user=person).current()]
    assert current == ["I live in Kyoto"]


async def test_a_request_is_saved_and_the_agent_knows(instructions, person):
    text = await instructions("Remember that I'm vegetarian")

    assert 'Saved just now, because the user asked for it: "I\'m vegetarian"' in text
    memory = await Memory.objects.aget(user=person)
    assert (memory.source, memory.run_id is not None) == ("stated", True)


async def test_a_secret_is_refused_and_the_agent_knows(instructions):
    text = await instructions("Remember that my card is 4111 1111 1111 1111")

    assert "Not saved, although the user asked for it" in text
    assert not await Memory.objects.aexists()


async def test_a_suggestion_is_not_recalled(remember, instructions):
    await sync_to_async(remember)("My cat is called Mikan", reason="Not your words.")

    assert "Mikan" not in await instructions("What is the name of my cat?")


async def test_other_users_get_nothing(remember, instructions, stranger):
    await sync_to_async(remember)("My cat is called Mikan")

    assert "Mikan" not in await instructions("What is the name of my cat?", user=stranger)


async def test_a_guardrail_for_messages_applies_to_memories(remember, instructions):
    await sync_to_async(remember)("My cat is called Mikan")
    await GuardrailPattern.objects.acreate(
        name="cats", pattern="Mikan", stage="input", action="block"
    )

    assert "Mikan" not in await instructions("What is the name of my cat?")


@pytest.mark.parametrize("where", ["user", "agent", "group", "temporary", "shared"])
async def test_memory_can_be_off(where, person, stranger, remember, instructions):
    await sync_to_async(remember)("My cat is called Mikan")
    await sync_to_async(turn_off)(where, person, stranger)

    assert "Mikan" not in await instructions("What is the name of my cat?")
    await instructions("Remember that I like tea", topic="chat.1")
    assert await Memory.objects.acount() == 1


def turn_off(where, person, stranger):
    match where:
        case "user":
            profiles.save_setting(person, has_memory=False)
        case "agent":
            Agent.objects.update(uses_memory=False)
        case "group":
            group = Group.objects.create(name="contractors")
            person.groups.add(group)
            MemoryExclusion.objects.create(group=group)
        case "temporary":
            HiddenTopic.objects.create(topic="chat.1", user=person)
        case "shared":
            Membership.objects.create(topic="chat.1", user=person, may_write=True)
            Membership.objects.create(topic="chat.1", user=stranger)
