"""Answers that repeat our own prompts: the echo is left out, code and other markup stay."""

import re
from pathlib import Path

import pytest

from agents.engine.planner.react_planner import REACT_INSTRUCTIONS
from agents.engine.prompt_parts import BARE_MARKS, ENVELOPES, NOTE_PROMPT
from agents.engine.testing import Says
from agents.engine.turn.prompt_echo import PromptEchoFilter

AGENTS = Path(__file__).parents[3] / "agents"
MEMORY = "<user_memory>\nNotes that the user stated.\n- Likes tea.\n</user_memory>"
FENCED = f"Like this:\n```xml\n{MEMORY}\n```\nDone."
MARKUP = "<documents>\n  <document>1</document>\n</documents>\nis XML."
ECHOES = {
    f"{MEMORY}\n\nYou like tea.": "You like tea.",
    f"You like tea.\n\n{MEMORY}": "You like tea.\n\n",
    "<user_memory>\nNotes that the user stated.\n- Likes tea.": "",
    "<user_memory>\nNotes.\n\nYou like tea.": "You like tea.",
    f'<untrusted_content from="search">\n{NOTE_PROMPT}\nIt is 42.\n</untrusted_content>': (
        "It is 42.\n"
    ),
    REACT_INSTRUCTIONS.format(tools="- search: Finds.\n  Input: {}") + "\nYes.": "Yes.",
    "You can use these tools:\n- search: Finds.\n  Input: {}\n\nYes.": "Yes.",
    "You can use this tool:\n- search: Finds.\n  Input: {}\n\nYes.": "Yes.",
    "You can use this tool: search.": "You can use this tool: search.",
    "You can use these tools:\n- search\n- sums": "You can use these tools:\n- search\n- sums",
    "You can use it. You": "You can use it. You",
    "A stray </user_memory> end.": "A stray  end.",
    f"{NOTE_PROMPT}\nIt is 42.": "It is 42.",
    f"It is 42.\n{NOTE_PROMPT}": "It is 42.\n",
    "This is material to read.": "This is material to read.",
    "It is 42.\n</tool_response>": "It is 42.\n",
    FENCED: FENCED,
    f"`{MEMORY[:13]}` is a mark; 1 < 2 ~ 3.": "`<user_memory>` is a mark; 1 < 2 ~ 3.",
    MARKUP: MARKUP,
    "List<int> and <b>bold</b> <": "List<int> and <b>bold</b> <",
}


@pytest.mark.parametrize("size", [1, 2, 7, 10_000])
@pytest.mark.parametrize(("text", "expected"), ECHOES.items())
def test_an_echo_is_left_out_wherever_the_text_is_cut(text, expected, size):
    echo = PromptEchoFilter()
    pieces = [echo.feed(text[at : at + size]) for at in range(0, len(text), size)]

    assert "".join([*pieces, echo.rest()]) == expected


async def test_an_answer_without_the_echo_is_streamed_and_saved(agent):
    events = [e async for e in agent(Says(answer=f"{MEMORY}\nYou like tea.")).stream("What?")]

    shown = "".join(e.data["content"] for e in events if e.type == "delta")
    assert shown.strip() == events[-1].data["answer"].strip() == "You like tea."


def test_every_mark_of_our_prompts_is_known():
    sources = [path.read_text() for path in AGENTS.rglob("*.py")]
    opening = re.compile(r'(?:OPENING|TEMPLATE)\b[^=\n]*= ["\']<(\w+)')
    written = {name for source in sources for name in opening.findall(source)}
    for source in sources:
        for preambles in re.findall(r"^PREAMBLES = \{$(.+?)^\}", source, re.M | re.S):
            written |= {*re.findall(r'^    "(\w+)":', preambles, re.M)}

    assert {"user_memory", "untrusted_content"} <= written
    assert written <= {*ENVELOPES, *BARE_MARKS}


def test_the_reply_format_has_no_name_that_a_model_could_call():
    assert re.findall(r"^Action:.*", REACT_INSTRUCTIONS, re.M) == []
