"""What a conversation holds that the fields of a form can be filled with."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from . import passages, rows, words
from .history import Question, Situation
from .rows import Rows
from .schema import singular

_MARKED = re.compile(r"\*\*(.+?)\*\*")
_FIGURE = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?(?=%?$)")
_SOURCES = re.compile(r"(?:Sources|出典):\n")
_MARKUP = re.compile(r"\*\*|`| ?\[\d{1,3}\]")
_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_YES = re.compile(r"yes[,.;!]|はい[、。]", re.IGNORECASE)
_NO = re.compile(r"no[,.;!]|いいえ[、。]", re.IGNORECASE)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\x00-\x7f]+")

_SUM, _QUOTE = ("expression", "result"), ("source", "text")

# What a field holds by a word of its name, whatever the answer is about.
_TITLES_IN_WORDS = "title heading headline subject topic question タイトル 題名 件名 質問"
_NAMES_IN_WORDS = "name label winner best top 名前 名称"
_PROSE_IN_WORDS = """
    answer text summary note description explanation comment message result reply response
    conclusion remark detail 答え 回答 要約 説明 備考 メモ 結論
"""
_FIGURES_IN_WORDS = """
    answer result value number total amount count sum figure quantity percentage percent
    average mean difference change rate share 答え 結果 値 合計 金額 件数 平均 割合
"""
_TITLES = frozenset(_TITLES_IN_WORDS.split())
_NAMES = frozenset(_NAMES_IN_WORDS.split())
_PROSE = frozenset(_PROSE_IN_WORDS.split())
_FIGURES = frozenset(_FIGURES_IN_WORDS.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A question, its answer in words, and what tools have found for it.

    `sums` are calculations, each an expression and its result; `quotes` are passages, each a
    source and its text.
    """

    question: Question
    answer: str = ""
    tables: tuple[Rows, ...] = ()
    sums: tuple[tuple[str, float], ...] = ()
    quotes: tuple[tuple[str, str], ...] = ()

    @property
    def prose(self) -> str:
        """The answer without its tables, its sources and its marks."""
        blocks = re.split(r"\n{2,}", self.answer)
        kept = [b for b in blocks if not b.startswith(("|", "```")) and not _SOURCES.match(b)]
        return _MARKUP.sub("", "\n\n".join(kept)).strip(" \n:")

    def figures(self) -> Iterator[float]:
        """The numbers that the answer is about: calculated, counted, or emphasised in it."""
        yield from (result for _, result in self.sums[-1:])
        yield from (t.values[-1] for t in self.tables if len(t.rows) == 1 and t.values)
        yield from (part for part in _marked(self.answer) if not isinstance(part, str))

    def facts(self, name: str) -> Iterator[Any]:
        """What a field of this name is known to hold, best first and of any type."""
        parts = {singular(part) for part in name_words(name)}
        yield from self._cells(name)
        if parts & _TITLES:
            yield self.question.text.strip()
        if parts & _NAMES:
            yield from (part for part in _marked(self.answer) if isinstance(part, str))
        if parts & _PROSE and self.prose:
            yield self.prose
        if parts & _FIGURES:
            yield from self.figures()
        yield from self._said_of(name)
        if _YES.match(self.prose) or _NO.match(self.prose):
            yield _YES.match(self.prose) is not None

    def guesses(self) -> Iterator[Any]:
        """What comes nearest where a field must hold something and nothing is known of it."""
        yield from [self.prose] if self.prose else []
        yield from self.figures()

    def dates(self) -> Iterator[str]:
        yield from _DATE.findall(self.answer)

    def mentioned(self, choices: Sequence[Any]) -> list[Any]:
        """Those of the choices that are words of the answer or the question, in their order."""
        said = f"{self.prose}\n{self.question.text}".lower()
        places = [(_place(choice, said), choice) for choice in choices]
        there = [(at, choice) for at, choice in places if at is not None]
        return [choice for _, choice in sorted(there, key=lambda place: place[0])]

    def groups(self) -> Iterator[Sequence[Rows]]:
        """What can become rows; a group is used only where none before it can be."""
        yield self.tables
        yield [_pairs(table) for table in self.tables if len(table.rows) == 1]
        yield [Rows(columns=_SUM, rows=self.sums)]
        yield [Rows(columns=_QUOTE, rows=self.quotes)]

    def _cells(self, name: str) -> Iterator[Any]:
        for table in [*self.tables, Rows(columns=_SUM, rows=self.sums[-1:])]:
            if len(table.rows) == 1:
                cells = zip(table.columns, table.rows[0], strict=True)
                yield from (cell for column, cell in cells if is_same(column, name))

    def _said_of(self, name: str) -> Iterator[Any]:
        """What the answer emphasises after the name of the field."""
        last = name_words(name)[-1:]
        for noun in dict.fromkeys([" ".join(name_words(name)), *last]):
            if noun and (found := words.pattern(noun).search(self.answer.lower())):
                yield from _marked(self.answer[found.end() :])


def learn(situation: Situation, answer: str) -> Known:
    """What is known when the answer has been given in words."""
    good = [finding for finding in situation.findings if not finding.failed]
    tables = [table for finding in good if (table := rows.parse(finding.text))]
    quotes = [quote for finding in good for quote in passages.parse(finding.text)]
    return Known(
        question=situation.question,
        answer=answer,
        tables=tuple(table for table in tables if table.columns),
        sums=tuple((f.input, number(f.text)) for f in good if rows.is_figure(f.text)),
        quotes=tuple((quote.source, quote.text) for quote in quotes),
    )


def number(text: str) -> float:
    """A figure as a number; whole ones have no fraction."""
    figure = rows.figure(text) or "nan"
    if re.fullmatch(r"-?\d{1,300}", figure):
        return int(figure)
    value = float(figure)
    return int(value) if value.is_integer() else value


def name_words(name: str) -> list[str]:
    """The words of a name, however it joins them: `total_revenue`, `totalRevenue`."""
    return [word.lower() for word in _WORD.findall(name)]


def is_same(column: str, name: str) -> bool:
    """Whether two names differ only in how they are written, or in number."""
    return list(map(singular, name_words(column))) == list(map(singular, name_words(name)))


def _place(choice: Any, said: str) -> int | None:
    """Where in a text this word stands."""
    if not isinstance(choice, str) or not choice:
        return None
    spelt = re.escape(choice.lower()).replace("_", "[ _-]")
    found = re.search(rf"(?<![a-z0-9]){spelt}(?![a-z0-9])", said)
    return found.start() if found else None


def _marked(text: str) -> Iterator[str | float]:
    """What the text emphasises: words as words, figures as numbers."""
    for part in _MARKED.findall(text):
        yield number(part) if _FIGURE.match(part) else part


def _pairs(table: Rows) -> Rows:
    """One row of numbers as rows of their own, each with the name of its column."""
    cells = zip(table.columns, table.rows[0], strict=True)
    pairs = [(name.replace("_", " "), cell) for name, cell in cells if rows.is_number(cell)]
    return Rows(columns=("name", "value"), rows=pairs)
