"""How answers should be: learned from what users say twice, never against their own words."""

import pytest
from asgiref.sync import sync_to_async

from agents.accounts.users import profiles
from agents.memory import style
from agents.models import Personalization, StyleSignal

pytestmark = pytest.mark.django_db(transaction=True)


def learned(person):
    row = Personalization.objects.filter(user=person).first()
    return row.learned if row else {}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Please keep it short", {"length": "short"}),
        ("Explain this in more detail", {"length": "detailed"}),
        ("箇条書きでお願いします", {"format": "bullets"}),
        ("今後は日本語で答えて、簡潔にお願い", {"language": "ja", "length": "short"}),
        ("How long is the shipping time?", {}),
        ("Too long, and not in more detail", {}),
        ("What does formal mean?", {}),
    ],
)
def test_messages_say_how_answers_should_be(message, expected):
    assert dict(style.stated(message)) == expected


def test_one_remark_is_not_enough_and_two_are(answered, learn, person):
    answered("Keep it short: what is tea?", topic="chat.1")
    learn()
    assert learned(person) == {}

    answered("Be brief. What is ink?", topic="chat.2")
    learn()
    assert learned(person) == {"length": "short"}


def test_from_now_on_is_enough(answered, learn, person):
    answered("From now on, answer in Japanese")
    learn()

    assert learned(person) == {"language": "ja"}


def test_ratings_as_too_long_are_learned(answered, rate, learn, person):
    for at in range(2):
        rate(answered(topic=f"chat.{at}"), reason="long")
    learn()

    assert learned(person) == {"length": "short"}


def test_contrary_remarks_cancel_each_other(answered, learn, person):
    for at, text in enumerate(("Be brief", "Keep it short", "In more detail", "More detail")):
        answered(f"{text}, please. What is tea?", topic=f"chat.{at}")
    learn()

    assert learned(person) == {}


def test_a_forgotten_trait_has_no_evidence_left(answered, learn, person):
    answered("From now on, keep it short")
    learn()

    style.forget(person.pk, "length")
    assert learned(person) == {}
    assert not StyleSignal.objects.exists()


async def test_the_agent_gets_it_in_the_users_profile(built, person):
    await Personalization.objects.acreate(user=person, learned={"length": "short"})

    prepared, _run = await built("6 * 7")
    part = prepared.planners[0].instructions.partition("<user_profile>")[2]
    assert "Keep answers short." in part


async def test_a_chosen_value_wins(built, person):
    await Personalization.objects.acreate(
        user=person, learned={"length": "short"}, chosen={"length": "detailed"}
    )

    text = (await built("6 * 7"))[0].planners[0].instructions
    assert "Give detailed answers." in text
    assert "Keep answers short." not in text


async def test_custom_instructions_are_never_contradicted(built, person):
    save = sync_to_async(profiles.save_setting)
    await save(person, answer_style="Always answer in great detail.")
    await Personalization.objects.acreate(
        user=person, learned={"length": "short", "format": "bullets"}
    )

    text = (await built("6 * 7"))[0].planners[0].instructions
    assert "Keep answers short." not in text
    assert "Prefer bullet points." in text


@pytest.mark.parametrize("where", ["user", "agent"])
async def test_a_learned_style_can_be_off(where, built, person, learner):
    learner.learns = where != "agent"
    await learner.asave()
    await Personalization.objects.acreate(
        user=person, learned={"length": "short"}, learns_style=where != "user"
    )

    assert "Keep answers short." not in (await built("6 * 7"))[0].planners[0].instructions
