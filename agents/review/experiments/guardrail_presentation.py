"""The backtest of a guardrail as its page displays it."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.contrib.auth.models import User

from agents.access import masking
from agents.db.sentences import translate
from agents.models import GuardrailPattern
from agents.web.presentation import trace_url

from .models import Experiment, ExperimentResult

State = ExperimentResult.State
MAX_EXAMPLES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class HitExample:
    """A hit in its context; personal data is masked already."""

    run: int
    hit: dict[str, Any]

    @property
    def href(self) -> str:
        return trace_url(self.run)

    @property
    def stage(self) -> str:
        return str(GuardrailPattern.Stage(self.hit["value"]).label)


class GuardrailView:
    """How far a backtest is, and what the rule hit."""

    def __init__(self, experiment: Experiment, reader: User) -> None:
        self.experiment = experiment
        self.reader = reader

    @property
    def is_model_check(self) -> bool:
        return bool(self.experiment.judge_model)

    @property
    def is_masked(self) -> bool:
        """Whether hits inside others' personal data weren't counted."""
        return not self.reader.has_perm(masking.UNMASK_PERMISSION)

    @cached_property
    def states(self) -> Counter[str]:
        return Counter(self.experiment.results.values_list("state", flat=True))

    @property
    def checked(self) -> int:
        """How many runs or texts were checked; those without hits aren't saved."""
        unchecked = sum(
            self.states[state] for state in (*ExperimentResult.OPEN, State.CANCELLED)
        )
        return self.experiment.count - unchecked

    @cached_property
    def hits(self) -> list[ExperimentResult]:
        return list(self.experiment.results.filter(state=State.FAILED))

    @cached_property
    def failures(self) -> list[str]:
        failed = self.experiment.results.filter(state=State.ERROR)
        return [translate(problem) for problem in failed.values_list("problem", flat=True)]

    @property
    def stages(self) -> list[tuple[str, int]]:
        counts = Counter(hit["value"] for result in self.hits for hit in result.checks)
        return [
            (str(GuardrailPattern.Stage(stage).label), count)
            for stage, count in counts.most_common()
        ]

    @property
    def agents(self) -> list[tuple[str, int]]:
        counts = Counter(hit["agent"] for result in self.hits for hit in result.checks)
        return counts.most_common()

    @property
    def examples(self) -> list[HitExample]:
        return [
            HitExample(run=result.origin_id, hit=result.checks[0])
            for result in self.hits[:MAX_EXAMPLES]
            if result.origin_id
        ]
