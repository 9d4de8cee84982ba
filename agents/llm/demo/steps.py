"""The parts of a recorded plan: its steps and its answer."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from agents.engine.text import shorten_line

from .conversation import Finding, Offer, Situation

Findings = Sequence[Finding]
MAX_NAME_CHARS = 150
REFERENCE = re.compile(r"⟦(\d)(?: (\w+))?⟧")


class DemoStep(NamedTuple):
    """One call; `⟦0⟧` in its text is replaced by the number that step 0 found."""

    name: str
    tool: Offer
    text: str
    thought: str = ""
    expected: str = ""


class DemoPlan(NamedTuple):
    """Steps and their answer; `lost` had no result before, and `instead` replaces it."""

    answer: Callable[[Findings], str]
    steps: tuple[DemoStep, ...] = ()
    lost: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()


def calculation(situation: Situation, text: str, name: str, thought: str = "rest") -> DemoStep:
    say = situation.question.say
    tool = situation.calculator or Offer("calculator")
    return DemoStep(name, tool, text, say(f"think_{thought}"), say("expect_figure"))


def search(situation: Situation, tool: Offer, query: str) -> DemoStep:
    say = situation.question.say
    name = say("search_name", name=shorten_line(query, MAX_NAME_CHARS))
    return DemoStep(name, tool, query, say("think_search"), say("expect_passage"))
