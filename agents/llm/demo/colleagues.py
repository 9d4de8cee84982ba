"""Tasks for other agents: who is to be asked, for what, and what came back."""

import re
from collections.abc import Mapping
from datetime import date

from .history import Finding, Offer, Question, Situation
from .plan import Findings, Plan, Stage

_EDGE = r"[A-Za-z0-9_-]"
_VERB = (
    r"(?:[聞訊き]いて|(?:尋|たず)ねて|質問して|頼んで|(?:お願い|依頼)して)"
    r"(?:みて)?(?:ください|下さい|くれ(?:ますか|る|ない)?|ほしい)?"
)
# What a person says with WHO as the agents' names; the rest is the task.
_WISHES = (
    r"(?:please\s+)?(?:(?:can|could|would)\s+you\s+(?:please\s+)?)?(?:ask|tell)\s+"
    r"(?:the\s+)?(?:agents?\s+)?WHO(?:\s+agents?)?(?:\s*[:：,、，]\s*|\s+)"
    r"(?:(?:to|about|for)\s+)?(?P<task>.+)",
    r"@WHO(?:\s*[:：,、，]\s*|\s+)(?P<task>.+)",
    rf"WHO(?:エージェント|さん)?に[、,]?\s*{_VERB}\s*[:：、。,.\s]\s*(?P<task>.+)",
    rf"WHO(?:エージェント|さん)?に[、,]?\s*(?P<task>.+?)(?:って|[とをか])?\s*{_VERB}[。.!！]*",
    r"WHO(?:エージェント|さん)?に[、,]?\s*(?P<task>.+て)もらって(?:ください|下さい)?[。.!！]*",
)


def handed_on(situation: Situation, today: date) -> Plan | None:
    """A wish that names an agent is handed to it, and what it says is told under its name."""
    question, colleagues = situation.question, offered(situation)
    agents, task = _wish(question.text.strip(), colleagues)
    if not task:
        return None
    stages = [
        Stage(
            tool=colleagues[agent],
            thought=question.say(
                f"This is for {agent}, so I hand it on.",
                f"{agent}への依頼なので、そのまま頼みます。",
            ),
            write=lambda _: task,
        )
        for agent in agents
    ]

    def answer(found: Findings) -> str:
        answers = zip(agents, found, strict=False)
        return "\n\n".join(said(agent, finding.text, question) for agent, finding in answers)

    def failed(found: Findings, last: Finding) -> str:
        failure = _failure(agents[len(found)], last.text, question)
        return f"{answer(found)}\n\n{failure}".strip()

    return Plan(stages=tuple(stages), answer=answer, failed=failed)


def offered(situation: Situation) -> dict[str, Offer]:
    """The agents that can be asked, by name."""
    return {tool.agent: tool for tool in situation.tools if tool.agent}


def _wish(text: str, colleagues: Mapping[str, Offer]) -> tuple[list[str], str]:
    """Who is to be asked, and what: nobody and nothing where no agent is named."""
    if not colleagues:
        return [], ""
    names = sorted(colleagues, key=len, reverse=True)
    one = rf"(?<!{_EDGE})(?:{'|'.join(map(re.escape, names))})(?!{_EDGE})"
    who = rf"(?P<who>{one}(?:\s*(?:,\s*and\b|,|、|と|&|\band\b)\s*{one})*)"
    for wish in _WISHES:
        found = re.fullmatch(wish.replace("WHO", who), text, re.IGNORECASE | re.DOTALL)
        if found:
            spoken = re.findall(one, found["who"], re.IGNORECASE)
            agents = dict.fromkeys(_named(name, names) for name in spoken)
            return list(agents), found["task"].strip(' 　\n「」『』“”"')
    return [], ""


def _named(spoken: str, names: list[str]) -> str:
    """The agent that is meant, however its name was spelt."""
    exact = (name for name in names if name == spoken)
    return next(exact, None) or next(n for n in names if n.lower() == spoken.lower())


def said(agent: str, text: str, question: Question) -> str:
    if "\n" in text:
        return question.say(f"{agent} says:\n\n{text}", f"{agent}によると:\n\n{text}")
    return question.say(f"{agent} says: {text}", f"{agent}によると、{text}")


def _failure(agent: str, error: str, question: Question) -> str:
    reason = error.removeprefix("Error:").strip()
    reason = reason.removeprefix(f"{agent} could not finish:").strip()
    return question.say(
        f"{agent} could not finish this: {reason}",
        f"{agent}は最後までできませんでした: {reason}",
    )
