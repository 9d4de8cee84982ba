"""What the demo model is told when it has to write a plan."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agents.engine.loop import HANDOFF_PREFIX, Handoff

from .history import LONGEST_QUESTION, Message, Offer, Question, Situation, listed, spoken

_PARTS = re.compile(
    r"(?:\AQuestion: |\n\nQuestion: )(?P<question>.*?)"
    r"(?P<past>\n\nA plan that was tried: .*|\n\nYour last plan cannot be carried out: .*|)\Z",
    re.DOTALL,
)
_SAID = re.compile(r"^user: (.+)$", re.MULTILINE)
_AGENTS = re.compile(r"^Agents: (.+)$", re.MULTILINE)
_AGENT = re.compile(
    r"(?:^|; )([^\s:;]+): (Ask the agent \1\..*?)(?=; [^\s:;]+: Ask the agent|$)"
)
_ROLES = re.compile(r"^Roles: (.+)$", re.MULTILINE)
_BROKEN = re.compile(
    r"(?:^What was wrong: |[.。] ?)(“[^\n]+?” failed: [^\n]+)"
    r"|^Your last plan cannot be carried out: (.+)$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """A question and the tools to plan with; `past` is what was said of plans before.

    `roles` are those that somebody has, a person or an agent.
    """

    situation: Situation
    roles: tuple[str, ...] = ()
    past: str = ""

    @property
    def question(self) -> Question:
        return self.situation.question

    def is_in_vain(self, name: str) -> bool:
        """Whether a step of this name was done, and did not give what was expected."""
        return f"“{name}” did not give what was expected" in self.past

    @property
    def breakdown(self) -> str:
        """What another plan would not mend: a tool that failed, or takes something else."""
        found = _BROKEN.search(self.past)
        return (found[1] or found[2]) if found else ""


def read(messages: Sequence[Message]) -> Brief:
    system = "\n".join(spoken(message) for message in messages if message["role"] == "system")
    told = spoken(messages[-1]) if messages else ""
    found = _PARTS.search(told)
    asked = Question(text=(found["question"] if found else told)[:LONGEST_QUESTION])
    before = _SAID.findall(told[: found.start()]) if found else []
    situation = Situation(
        question=asked,
        earlier=Question(text=before[-1]) if before else None,
        tools=(*listed(system, "arguments"), *_agents(system)),
    )
    past = found["past"] if found else ""
    return Brief(situation=situation, roles=tuple(_roles(system)), past=past)


def _agents(system: str) -> Iterator[Offer]:
    said = _AGENTS.search(system)
    for name, description in _AGENT.findall(said[1]) if said else ():
        yield Offer(
            name=f"{HANDOFF_PREFIX}{name}",
            description=description,
            parameters=Handoff.parameters,
        )


def _roles(system: str) -> list[str]:
    said = _ROLES.search(system)
    return said[1].split(", ") if said and said[1] != "none" else []
