"""Plans for others to carry out: the question in parts, each with what it takes to answer it.

A plan is made anew from the question every time; what was in vain before is left for what is
nearest to it. So a step that was well is written exactly as it was.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date

from . import help, naming, skills, steps
from .brief import Brief
from .comparison import compared
from .history import Question
from .piece import Piece
from .pieces import laid_out
from .steps import Fields

_CLAUSES = re.compile(
    r"[?？。;；\n]+|,? (?:and|then) (?=how|what|which|who|show|list|compare)"
    r"|、(?=それから|また|そして|あと)(?:それから|また|そして|あと)",
    re.IGNORECASE,
)
_MOST_CLAUSES = 4
_ASK = r"(?:^|[,.;?]?\s*\b(?:and |then )*)(?:please )?ask "
_WHAT = r"(?P<what>(?:whether|if|about|for|to|what|which|when|how|who|why)\b[^.?!]*)[.?!]*$"
_WHAT_JA = (
    r"に(?P<what_ja>[^。]+?)(?:を|と|って)?"
    r"(?:聞いて|確認して|尋ねて|相談して)(?:ください|下さい)?[。？?]*$"
)
_PERSON = re.compile(
    rf"{_ASK}(?P<who>(?:my|our|the) [a-z ]{{2,30}}?) {_WHAT}"
    r"|(?:^|[、。])(?P<who_ja>上司|同僚|担当者|責任者|マネージャー|リーダー|チーム|お客様|専門家"
    rf"|[^\s、。に]{{1,10}}(?:さん|様|長|部|課|担当)){_WHAT_JA}",
    re.IGNORECASE,
)
# With WHO as the roles that somebody here has.
_EXPERT = (
    rf"{_ASK}(?:the |our )?(?P<who>WHO)(?: (?:team|department|group|people|experts?))? {_WHAT}"
    rf"|(?:^|[、。])(?P<who_ja>WHO)(?:部|課|チーム|担当者?|の専門家|の人|さん)?{_WHAT_JA}"
)
_DEED = re.compile(
    r"(?:^|,? (?:and|then) )(?:please |can you |could you |would you )*"
    r"(?P<deed>(?P<verb>send|e-?mail|mail|forward|book|reserve|call|phone|buy|purchase|pay"
    r"|delete|remove|update|change|rename|insert|post|publish|tweet|remind|schedule|cancel"
    r"|print)\b(?! (?:in|of|on|from|by|between)\b)[^.?!]+)"
    r"|(?:^|[、。？?])(?P<deed_ja>[^、。？?]+(?:送って|送信して|メールして|転送して|予約して|電話して|買って|購入して"
    r"|支払って|払って|削除して|消して|更新して|変更して|追加して|投稿して|公開して|印刷して))"
    r"(?:ください|下さい|ほしい)?[。！!]*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """A plan as it is written into its form; without steps, `cancel` may say why."""

    description: str
    steps: Sequence[Fields] = ()
    cancel: str = ""

    def to_dict(self) -> Fields:
        cancel = {"cancel": self.cancel} if self.cancel else {}
        return {"description": self.description, **cancel, "steps": list(self.steps)}


def write(brief: Brief, today: date) -> Outline:
    """The plan of the first writer that has one."""
    found = (writer(brief, today) for writer in WRITERS)
    return next(filter(None, found), None) or _unknown(brief.question)


def broken(brief: Brief, today: date) -> Outline | None:
    """A tool failed, or cannot be called as I would: another plan would be the same."""
    return _cancelled(brief.question, brief.breakdown) if brief.breakdown else None


def greeted(brief: Brief, today: date) -> Outline | None:
    if skills.greeted(brief.situation, today) is None:
        return None
    return Outline(description=brief.question.say(*naming.AT_ONCE))


def listed_tables(brief: Brief, today: date) -> Outline | None:
    """Known without any step, so the description of the plan says it."""
    plan = skills.listed_tables(brief.situation, today)
    return Outline(description=plan.answer([])) if plan else None


def beyond(brief: Brief, today: date) -> Outline | None:
    """What no tool can do is not begun."""
    question, tools = brief.question, [tool.name for tool in brief.situation.tools]
    found = _DEED.search(question.text.strip())
    if found is None or any((found["verb"] or "-").lower() in name for name in tools):
        return None
    deed, names = (found["deed"] or found["deed_ja"]).strip(), ", ".join(tools) or "—"
    why = question.say(
        f"There is no tool here to {deed[:1].lower()}{deed[1:]}. What there is: {names}.",
        f"「{deed}」という依頼に使えるツールがありません。あるもの: {names}。",
    )
    return _cancelled(question, why)


def with_an_expert(brief: Brief, today: date) -> Outline | None:
    """The same for whoever has a role: people or an agent, as it is here."""
    roles = sorted(brief.roles, key=len, reverse=True)
    expert = _EXPERT.replace("WHO", "|".join(map(re.escape, roles)))
    found = re.search(expert, brief.question.text.strip(), re.IGNORECASE) if roles else None
    return _asked(brief, found, steps.consultation, today) if found else None


def with_a_person(brief: Brief, today: date) -> Outline | None:
    """What the tools can find out, and then somebody who has to be asked."""
    found = _PERSON.search(brief.question.text.strip())
    return _asked(brief, found, steps.enquiry, today) if found else None


def _asked(
    brief: Brief, found: re.Match[str], write: steps.Writing, today: date
) -> Outline | None:
    question, who = brief.question, found["who"] or found["who_ja"]
    if _is_agent(who, brief):
        return None
    before = question.text.strip()[: found.start()].strip(" 、。,;")
    first = _pieces(_about(brief, before, question), today) if before else []
    done = [step["name"] for piece in first for step in piece.steps]
    asked = write(who, (found["what"] or found["what_ja"]).strip(), done, question)
    told = question.say(f"Ask {asked['name'].removeprefix('ask ')}.", f"{asked['name']}。")
    return _joined([*first, Piece(steps=(asked,), what=told)], question)


def _is_agent(who: str, brief: Brief) -> bool:
    agents = [tool.agent.lower() for tool in brief.situation.tools if tool.agent]
    return who.lower().removeprefix("the ") in agents


def in_parts(brief: Brief, today: date) -> Outline | None:
    found = _pieces(brief, today)
    return _joined(found, brief.question) if found else None


WRITERS: tuple[Callable[[Brief, date], Outline | None], ...] = (
    broken,
    greeted,
    listed_tables,
    beyond,
    with_an_expert,
    with_a_person,
    in_parts,
)


def _pieces(brief: Brief, today: date) -> list[Piece]:
    """Each clause apart if every one can be planned alone; else the question as one."""
    text = brief.question.text
    clauses = [part.strip() for part in _CLAUSES.split(text) if part.strip()]
    if 2 <= len(clauses) <= _MOST_CLAUSES:
        alone = [_piece(_about(brief, clause, brief.question), today) for clause in clauses]
        pieces = [piece for piece in alone if piece]
        names = [name for piece in pieces for name in piece.names]
        if len(pieces) == len(clauses) and len(set(names)) == len(names):
            return pieces
    piece = _piece(brief, today)
    return [piece] if piece else []


def _piece(brief: Brief, today: date) -> Piece | None:
    return compared(brief, today) or laid_out(brief, today)


def _about(brief: Brief, text: str, question: Question) -> Brief:
    """The same brief for a part of its question, in the language of the whole."""
    part = Question(text=text, voice=question.voice or question.text)
    return replace(brief, situation=replace(brief.situation, question=part))


def _joined(pieces: Sequence[Piece], question: Question) -> Outline:
    if stuck := [name for piece in pieces if not piece.steps for name in piece.lost]:
        return _in_vain(stuck, question)
    lost = [name for piece in pieces for name in piece.lost]
    instead = [name for piece in pieces for name in piece.instead]
    told = [naming.given_up(lost, instead, question)] if lost else []
    told += [piece.what for piece in pieces]
    written = [step for piece in pieces for step in piece.steps]
    return Outline(description=question.say(" ", "").join(told), steps=written)


def _in_vain(lost: Sequence[str], question: Question) -> Outline:
    why = question.say(
        f"Nothing was found for “{'” and “'.join(lost)}”, and I know of nothing near it.",
        f"{'、'.join(lost)}に当たるものが見つからず、近いものも分かりません。",
    )
    return _cancelled(question, why)


def _cancelled(question: Question, why: str) -> Outline:
    told = question.say("This cannot be done.", "実行できません。")
    return Outline(description=told, cancel=why)


def _unknown(question: Question) -> Outline:
    """Nothing that the rules know; a real model might."""
    no_rule = question.say("I have no rule for this.", "これに答える規則を持っていません。")
    # Why a run has ended is told as plain text.
    nature = help.nature(question).replace("`", "")
    return _cancelled(question, question.say(" ", "").join([no_rule, nature]))
