"""The page of a problem: where it occurs, example runs and its history."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.utils.safestring import SafeString

from agents.access.names import display_name
from agents.insight.problems import presentation
from agents.insight.problems.models import Problem, ProblemTag
from agents.models import Run

MAX_EXAMPLES = 10
MAX_TAGS = 10
MAX_CHANGES = 50
MAX_TARGETS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleRun:
    run: Run
    question: str
    times: int
    at: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLine:
    sentence: str
    at: Any


class ProblemView:
    """What a reader sees of a problem: example runs only within their rights, masked."""

    def __init__(self, problem: Problem, reader: User, session: Any) -> None:
        self.problem = problem
        self.reader = reader
        self.session = session

    @property
    def kind(self) -> str:
        return str(self.problem.get_kind_display())

    @property
    def tone(self) -> str:
        return presentation.TONES[Problem.Status(self.problem.status)]

    @property
    def sentence(self) -> str:
        return presentation.status_sentence(self.problem)

    @property
    def people(self) -> int | None:
        """How many people are affected; None for those who can't review runs."""
        if not self.reader.has_perm("agents.review_runs"):
            return None
        return presentation.people_counts([self.problem]).get(self.problem.pk, 0)

    @property
    def next_version(self) -> int:
        return (self.problem.agent.version if self.problem.agent else 0) + 1

    @property
    def can_wait_for_version(self) -> bool:
        return self.next_version > 1

    @property
    def chart(self) -> SafeString:
        return presentation.trend_chart(presentation.trends([self.problem])[self.problem.pk])

    @cached_property
    def versions(self) -> list[ProblemTag]:
        tags = self.problem.tags.filter(kind=ProblemTag.Kind.VERSION)
        return sorted(tags, key=lambda tag: int(tag.value), reverse=True)[:MAX_TAGS]

    @cached_property
    def models(self) -> list[ProblemTag]:
        return list(self.problem.tags.filter(kind=ProblemTag.Kind.MODEL)[:MAX_TAGS])

    @property
    def most(self) -> int:
        return max((tag.count for tag in [*self.versions, *self.models]), default=0)

    @cached_property
    def examples(self) -> list[ExampleRun]:
        visible = Run.objects.for_user(self.reader).listed()
        rows = self.problem.occurrences.filter(run__in=visible).order_by("-at", "-pk")
        occurrences = list(rows.select_related("run")[:MAX_EXAMPLES])
        runs = [occurrence.run for occurrence in occurrences]
        questions = presentation.example_questions(runs, self.reader, self.session)
        return [
            ExampleRun(run=row.run, question=question, times=row.times, at=row.at)
            for row, question in zip(occurrences, questions, strict=True)
        ]

    @cached_property
    def history(self) -> list[ChangeLine]:
        changes = list(self.problem.changes.select_related("by__profile")[:MAX_CHANGES])
        pks = [change.details["to"] for change in changes if change.details.get("to")]
        people = get_user_model().objects.filter(pk__in=pks).select_related("profile")
        names = {person.pk: display_name(person) for person in people}
        return [
            ChangeLine(sentence=presentation.change_sentence(change, names), at=change.at)
            for change in changes
        ]

    @cached_property
    def targets(self) -> list[Problem]:
        return merge_targets(self.problem, self.reader)


def merge_targets(problem: Problem, reader: User) -> list[Problem]:
    """Return problems of the same agent that this one could be merged into."""
    same = Problem.objects.changeable_by(reader).filter(
        agent=problem.agent_id, agent_name=problem.agent_name
    )
    return list(same.exclude(pk=problem.pk)[:MAX_TARGETS])
