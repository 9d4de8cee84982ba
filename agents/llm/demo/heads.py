"""What a panel asks of its model: to compare the answers of its members, and merge them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agents.engine.plans import QUESTION_TEMPLATE, SYNTHESIS_PROMPT, normal_form

from .form import Form
from .history import Message, Question, spoken

MOST_QUOTED = 160
_CITED = re.compile(r"\[\d+\]")
_FIGURE = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.]*\w)")
_END = re.compile(r"(?<=[.!?])\s|(?<=[。！？])|\n")
# What stands between backticks stays as it is: `6 * 7`, `2 ** 3`.
_MARKUP = re.compile(r"`+([^`]*)`+|\*\*(\S(?:.*?\S)?)\*\*|^\s*(?:#+|[*-]) |^\*\*|\*\*$|\|")


def compared(form: Form) -> dict[str, Any] | None:
    """Who says the same, what differs and, where a judge is asked for, who says it best."""
    fields = form.schema.get("properties") or {}
    found = _ASKED.fullmatch(spoken(form.messages[-1])) if form.messages else None
    if found is None or not {"groups", "differences", "heading"} <= fields.keys():
        return None
    names = fields["groups"]["items"]["items"]["enum"]
    question, answers = Question(text=found["question"]), _answers(found["answers"], names)
    groups = _groups(answers)
    value = {
        "groups": groups,
        "differences": [_told(group, answers, question) for group in groups],
        "heading": question.say("Where they differed", "意見が分かれた点"),
    }
    return value | _judged(answers, question) if "choice" in fields else value


def merged(messages: Sequence[Message]) -> str | None:
    """One answer from several, each statement with the names of those who made it."""
    found = _MERGED.fullmatch(spoken(messages[-1])) if messages else None
    if found is None:
        return None
    answers = _answers(found["answers"], found["names"].split(", "))
    told = [_signed(answers[group[0]], group) for group in _groups(answers)]
    return "\n\n".join([*told, found["differences"]])


def _form(template: str) -> re.Pattern[str]:
    """The engine's words, with a group where something was put in."""
    places = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.*?)", re.escape(template))
    return re.compile(places, re.DOTALL)


_ASKED = _form(QUESTION_TEMPLATE)
_MERGED = _form(SYNTHESIS_PROMPT)


def _answers(text: str, names: Sequence[str]) -> dict[str, str]:
    """What stands under each name; they stand in this order."""
    answers: dict[str, str] = {}
    for name, following in zip(names, [*names[1:], None], strict=True):
        _, _, text = text.partition(f"### {name}\n\n")
        end = text.find(f"\n\n### {following}\n\n") if following else -1
        answers[name] = (text if end < 0 else text[:end]).strip()
    return answers


def _groups(answers: Mapping[str, str]) -> list[list[str]]:
    """Those with the same figures say the same, or else those with the same words."""
    groups: dict[Any, list[str]] = {}
    for name, answer in answers.items():
        groups.setdefault(_figures(answer) or normal_form(answer), []).append(name)
    return list(groups.values())


def _figures(answer: str) -> frozenset[str]:
    return frozenset(_FIGURE.findall(normal_form(_CITED.sub(" ", answer))))


def _told(group: Sequence[str], answers: Mapping[str, str], question: Question) -> str:
    others = [answer for name, answer in answers.items() if name not in group]
    who, quoted = ", ".join(group), _quoted(answers[group[0]], others)
    return question.say(f"{who}: “{quoted}”", f"{who}：「{quoted}」")


def _quoted(answer: str, others: Sequence[str]) -> str:
    """The first sentence that nobody else says."""
    sentences = [part for part in _END.split(answer) if part.strip()]
    own = [part for part in sentences if not any(part in other for other in others)]
    words = " ".join(_bare(next(iter([*own, *sentences]), "")).split())
    return words if len(words) <= MOST_QUOTED else f"{words[: MOST_QUOTED - 1]}…"


def _bare(sentence: str) -> str:
    """Without its Markdown, which is no part of what is said."""
    return _MARKUP.sub(lambda found: found[1] or found[2] or "", sentence)


def _signed(answer: str, group: Sequence[str]) -> str:
    names = f"({', '.join(group)})"
    return f"{answer}\n\n{names}" if "\n" in answer else f"{answer} {names}"


def _judged(answers: Mapping[str, str], question: Question) -> dict[str, str]:
    """A figure at once counts most, then a passage that is cited."""
    first = {name: _END.split(answer)[0] for name, answer in answers.items()}
    exact = [name for name, sentence in first.items() if _figures(sentence)]
    cited = [name for name, answer in answers.items() if _CITED.search(answer)]
    reasons = (
        (exact, question.say("It gives a figure.", "数字を示しているためです。")),
        (cited, question.say("It cites a passage.", "出典を示しているためです。")),
    )
    for founded, reason in reasons:
        if 0 < len(founded) < len(answers):
            return {"choice": founded[0], "reason": reason}
    equal = question.say("My rules find no better one.", "規則では優劣がつきません。")
    return {"choice": next(iter(answers)), "reason": equal}
