"""What the demo model is told after a plan was carried out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from agents.engine.plans import RESULTS_PROMPT

from . import dimension as dimensions
from . import history, naming, rows
from .history import Finding, Message, Question, Situation, spoken
from .rows import Rows

_BEGIN, _, _END = (
    part.strip() for part in re.split(r"\{description\}|\{results\}", RESULTS_PROMPT)
)
_HEAD = re.compile(r"^## (.+) \((done|failed|skipped|unreached)\)$", re.MULTILINE)
_BEFORE_RESULTS = re.compile(r"\n\n(?=## |—)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a step of the plan gave, or why it gave nothing."""

    name: str
    status: str
    text: str

    @property
    def is_done(self) -> bool:
        return self.status == "done"

    @property
    def table(self) -> Rows | None:
        return rows.parse(self.text) if self.is_done else None

    @property
    def figure(self) -> float | None:
        """The one number that was measured, alone or beside the name of what came first."""
        table = self.table
        is_one = table is not None and len(table.rows) == 1 and len(table.columns) <= 2
        return table.values[0] if table and is_one and table.values else None

    def label(self, question: Question) -> str:
        """What came first, by its name; else what was measured, by the step's."""
        table = self.table
        if table and len(table.columns) == 2:
            return cell(table.columns[0], table.rows[0][0], question)
        return question.say(f"the {self.name}", self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A question, the plan for it in a sentence, and what came of each step."""

    question: Question
    description: str
    results: tuple[Result, ...]
    today: date

    def situation(self, answer: str) -> Situation:
        """The same for whoever has to write the answer in a form."""
        done = [result for result in self.results if result.is_done]
        found = [Finding(tool=r.name, input=r.name, text=r.text) for r in done]
        return Situation(question=self.question, findings=tuple(found), words=answer)

    def called(self, words: naming.Words) -> Result | None:
        """The step of such a name, or with such a beginning, if it was done."""
        found = (r for r in self.results if r.is_done and r.name.startswith(words))
        return next(found, None)


def read(messages: Sequence[Message], today: date) -> Report | None:
    """The report that the last message is, if it is one."""
    told = spoken(messages[-1]) if messages and messages[-1]["role"] == "user" else ""
    before, _, after = told.partition(_BEGIN)
    body, ends, _ = after.rpartition(_END)
    if not ends:
        return None
    said: list[Message] = [{"role": "user", "content": before}] if before.strip() else []
    description, *results = _BEFORE_RESULTS.split(body, maxsplit=1)
    return Report(
        question=history.read([*messages[:-1], *said], None).question,
        description=description.strip(),
        results=tuple(_results("".join(results))),
        today=today,
    )


def cell(column: str, value: Any, question: Question) -> str:
    """A cell for people, by the column that it stands in."""
    unit = next((dimensions.of_time(u) for u in dimensions.UNITS if u == column.lower()), None)
    year = question.say("", "年") if column.lower() == "year" else ""
    return rows.name_of(value, unit, question) + year


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _results(text: str) -> list[Result]:
    heads = list(_HEAD.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    return [
        Result(name=head[1], status=head[2], text=text[head.end() : end].strip())
        for head, end in zip(heads, ends, strict=False)
    ]
