"""Figures that come with the question itself: what they show, in a sentence or two."""

import re
from collections.abc import Sequence
from datetime import date
from typing import Any

from . import rows
from .history import Question, Situation
from .plan import Plan
from .report import cell
from .rows import Rows

MOST_NAMED = 3
_WISH = re.compile(
    r"\b(?:say|tell|report|write|show|what|summari[sz]e|sum up|describe|explain)\b"
    r"|要約|まとめ|説明|報告|示し|読み取|伝え|教え|述べ|書いて",
    re.IGNORECASE,
)


def told(situation: Situation, today: date) -> Plan | None:
    """`Say what these figures show`, with the rows behind it: no tool is needed for that."""
    text = situation.question.text
    wish, table = text.partition("{")[0], rows.parse(text)
    if table is None or not _WISH.search(wish):
        return None
    # The names in the rows may be of another language than the wish.
    return Plan(answer=lambda _: _read(table, Question(text=wish)))


def _read(table: Rows, question: Question) -> str:
    if not table.columns or table.is_empty:
        return question.say("There are no figures in this.", "数字がありません。")
    is_ranked = len(table.columns) == 2 and len(table.values) == len(table.rows)
    if len(table.rows) == 1 and not is_ranked:
        return rows.single(table, question)
    return _ranked(table, question) if is_ranked else rows.table(table, question)


def _ranked(table: Rows, question: Question) -> str:
    """Who has the most, and then the others or, where they are many, the last of them."""
    first, *others = sorted(table.rows, key=lambda row: row[-1], reverse=True)
    named = [_named(table, row, question) for row in others]
    sentences = [_best(table, first, question)]
    if len(others) > MOST_NAMED:
        sentences.append(
            question.say(f"The lowest is {named[-1]}.", f"最も少ないのは {named[-1]}です。")
        )
    elif others:
        sentences.append(_after(named, question))
    return question.say(" ", "").join(sentences)


def _best(table: Rows, row: Sequence[Any], question: Question) -> str:
    of, count = table.columns[-1].replace("_", " "), len(table.rows)
    name, value = cell(table.columns[0], row[0], question), rows.number(row[-1])
    if count == 1:
        return question.say(
            f"**{name}** has a {of} of **{value}**.", f"**{name}** は **{value}** です。"
        )
    return question.say(
        f"Of these {count}, **{name}** has the highest {of}, with **{value}**.",
        f"{count}件のうち最も多いのは **{name}**（**{value}**）です。",
    )


def _named(table: Rows, row: Sequence[Any], question: Question) -> str:
    name, value = cell(table.columns[0], row[0], question), rows.number(row[-1])
    return question.say(f"**{name}** ({value})", f"**{name}**（{value}）")


def _after(named: Sequence[str], question: Question) -> str:
    *most, last = named
    english = f"{', '.join(most)} and {last}" if most else last
    verb = "come" if most else "comes"
    return question.say(f"After it {verb} {english}.", f"次いで {'、'.join(named)}です。")
