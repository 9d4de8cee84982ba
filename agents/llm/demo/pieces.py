"""One part of a question as steps: what a skill would do itself, written down for others."""

import json
from dataclasses import replace
from datetime import date

from . import naming, passages, reasons, skills, steps, widening
from .brief import Brief
from .chains import averaged, chained, share
from .colleagues import handed_on
from .history import Finding
from .naming import of_request
from .piece import Piece
from .plan import Plan, Stage
from .request import Request
from .steps import Fields

SKILLS = (
    handed_on,
    chained,
    share,
    averaged,
    skills.calculated,
    skills.queried,
    skills.followed_up,
    skills.looked_up,
)
# Stands in an expression for a figure that another step will find.
_STAND_IN = 7_000_000_001


def laid_out(brief: Brief, today: date) -> Piece | None:
    """The steps of the first skill that has a plan, and a look for the reason if wanted."""
    wish, explains = reasons.parted(brief.question)
    is_all = explains and wish == brief.question
    chosen = (handed_on, skills.looked_up) if is_all else SKILLS
    situation = replace(brief.situation, question=wish)
    plan = next(filter(None, (skill(situation, today) for skill in chosen)), None)
    if plan is None:
        return None
    found = _Laying(brief, plan, today).piece()
    requests = [stage.request for stage in plan.stages if stage.request]
    if found is None or not explains or not requests:
        return found
    first = requests[0]
    by = first.dimension if first.dimension and first.dimension.unit else None
    return replace(found, steps=(*found.steps, *reasons.lookup(first, by, brief)))


class _Laying:
    def __init__(self, brief: Brief, plan: Plan, today: date) -> None:
        self.brief = brief
        self.question = brief.question
        self.plan = plan
        self.today = today
        self.steps: list[Fields] = []
        self.found: list[Finding] = []
        self.meant: dict[str, tuple[str, str]] = {}
        self.lost: list[str] = []
        self.instead: list[str] = []

    def piece(self) -> Piece | None:
        """None where a step could only be written by looking at what one before it found."""
        for stage in self.plan.stages:
            written = self._written(stage)
            if not written:
                return Piece(lost=tuple(self.lost)) if self.lost else None
            self.steps += written
        text = self.question.text.strip()
        what = self.question.say(f"Find out: {text}", f"調べること: {text}")
        return Piece(
            steps=tuple(self.steps),
            what=what,
            lost=tuple(self.lost),
            instead=tuple(self.instead),
        )

    def _written(self, stage: Stage) -> list[Fields]:
        if stage.request is not None:
            return self._query(stage, stage.request)
        text = stage.write(self.found)
        if text is None:
            return []
        if stage.tool.agent:
            return [steps.errand(stage.tool, text, self.question)]
        if stage.tool == self.brief.situation.tool("calculator", "expression"):
            return [self._sum(stage, text)]
        return self._lookup(stage, text)

    def _query(self, stage: Stage, request: Request) -> list[Fields]:
        """With something near it instead, where it was in vain; several rows are added up."""
        is_worked_with = len(self.plan.stages) > 1
        elsewhen, wider = widening.elsewhen(request, self.today), widening.wider(request)
        others = elsewhen if is_worked_with else wider
        taken = [step["name"] for step in self.steps]
        standing = widening.standing(request, others, self.brief, taken)
        if standing != request:
            self.lost.append(of_request(request, self.question))
            self.instead += [of_request(standing, self.question)] if standing else []
        if standing is None:
            return []
        is_many = standing.dimension is not None and standing.limit != 1
        self._stand_in(of_request(standing, self.question), is_many=is_many)
        compares = is_worked_with and not is_many
        written = [steps.query(stage.tool, standing, self.question, compares=compares)]
        if is_worked_with and is_many:
            written.append(steps.total(stage.tool, standing, self.question))
        return written

    def _stand_in(self, name: str, *, is_many: bool) -> None:
        """Figures that nobody knows yet, for a skill to write its expression with."""
        first, second = (_STAND_IN + 2 * len(self.found) + at for at in range(2))
        cells = [[first], [second]] if is_many else [[first]]
        table = {"columns": ["it"], "rows": cells}
        self.found.append(Finding(tool="", text=json.dumps(table)))
        if not is_many:
            self.meant[f"{first}"] = (steps.figure(name), name)
            return
        total = self.question.say(*naming.TOTAL) + name
        both, number = steps.figure(total, 0), steps.figure(total, 1)
        say = self.question.say
        mean = say(f"average of {name}", f"{name}の平均")
        self.meant[f"({first} + {second}) / 2"] = (f"{both} / {number}", mean)
        self.meant[f"({first} + {second})"] = (both, say(f"sum of {name}", f"{name}の合計"))

    def _sum(self, stage: Stage, text: str) -> Fields:
        """The expression with references; its name has the names of what it refers to."""
        expression, called = text, text
        for stand_in, (reference, name) in self.meant.items():
            expression = expression.replace(stand_in, reference)
            called = called.replace(stand_in, name)
        needs = [step["name"] for step in self.steps]
        name = self.question.say(*naming.SUM) + naming.short(called)
        return steps.sum(stage.tool, expression, name, needs, self.question)

    def _lookup(self, stage: Stage, query: str) -> list[Fields]:
        """With all the words first, and then with those that say most."""
        for words in dict.fromkeys((query, passages.key_words(query))):
            step = steps.lookup(stage.tool, words, self.question)
            if words and not self.brief.is_in_vain(step["name"]):
                self.instead += [words] if self.lost else []
                return [step]
            self.lost.append(words)
        return []
