"""The trace says what a prompt contains, from where, and how many tokens it took."""

from agents.catalog import custom_instructions
from agents.engine import prompt_parts
from agents.engine.history_summary import summary_messages
from agents.memory.recall import RecalledNote, compose
from agents.models import Memory
from agents.review.run_details.prompt_sources import prompt_sources

MEMORY = RecalledNote(
    note=Memory(pk=1, text="I like tea"), score=0.5, why="words", matched=("tea",)
)


def sources(*messages, notes=()):
    return {one.source: one for one in prompt_sources(messages, [], notes)}


def test_each_part_of_the_instructions_has_its_source():
    text = "Help." + custom_instructions.compose("I sell tea.", "") + compose([MEMORY])
    note = {"kind": "memory", "used": [MEMORY.to_json()]}

    found = sources(
        {"role": "system", "content": text}, {"role": "user", "content": "Hi"}, notes=[note]
    )

    assert [*found] == ["agent", "profile", "memory", "question"]
    assert found["memory"].memories[0]["reason"] == "same words: tea"
    assert sum(one.share for one in found.values()) in range(97, 104)


def test_earlier_turns_their_summary_and_results_are_apart():
    found = sources(
        *summary_messages("They live in Uji."),
        {"role": "user", "content": "Before"},
        {"role": "assistant", "content": "Then"},
        {"role": "user", "content": "Now"},
        {"role": "tool", "content": "Result"},
    )

    assert [*found] == ["summary", "history", "question", "results"]


def test_shared_links_have_none_of_the_users_parts():
    text = "Own." + custom_instructions.compose("I sell tea.", "") + compose([MEMORY])

    assert prompt_parts.remove_personal(text) == "Own."
