"""The texts of past runs that a guardrail would have checked, as their reader sees them."""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agents.access import masking
from agents.engine.guardrails import Pattern, Stage
from agents.engine.privacy import StreamingMasker
from agents.models import AgentStep, Run
from agents.models.sentence_fields import first_chars
from agents.models.types import AnyUser

MAX_TEXT_CHARS = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunText:
    """A text of a run; a tool's input isn't always text."""

    run: int
    stage: Stage
    agent: str
    value: Any
    step: int | None = None
    is_masked: bool = False

    @property
    def text(self) -> str:
        is_text = isinstance(self.value, str)
        return self.value if is_text else json.dumps(self.value, ensure_ascii=False)

    @property
    def name(self) -> str:
        """Which text of its run it is."""
        return self.stage if self.step is None else f"{self.stage} {self.step}"

    def masked(self) -> "RunText":
        """Return it without personal data.

        The original text of others isn't searched at all: even a count would reveal it, because
        a pattern can match either something hidden or something always present.
        """
        if self.stage == "tool_output" and len(self.value) == MAX_TEXT_CHARS:
            value = StreamingMasker().feed(self.value)  # may be cut inside an address
        else:
            value = masking.mask_value(self.value)
        return replace(self, value=value, is_masked=True)


def load(runs: Sequence[int], rule: Pattern) -> Iterator[RunText]:
    """Yield the texts of these runs at the stages that the rule applies to, newest first."""
    if rule.applies_to("input") or rule.applies_to("output"):
        rows = Run.objects.filter(pk__in=runs).order_by("-pk")
        for pk, agent, query, answer in rows.values_list("pk", "agent_name", "query", "answer"):
            if rule.applies_to("input"):
                yield RunText(run=pk, stage="input", agent=agent, value=query)
            if rule.applies_to("output"):
                yield RunText(run=pk, stage="output", agent=agent, value=answer)
    if rule.applies_to("tool_input") or rule.applies_to("tool_output"):
        steps = AgentStep.objects.filter(run__in=runs, kind=AgentStep.Kind.TOOL)
        steps = steps.annotate(start=first_chars("observation", MAX_TEXT_CHARS))
        columns = ("run_id", "number", "agent_name", "action_input", "start")
        for pk, number, agent, arguments, result in steps.order_by(
            "-run", "number"
        ).values_list(*columns):
            text = RunText(
                run=pk, stage="tool_input", agent=agent, value=arguments, step=number
            )
            if rule.applies_to("tool_input"):
                yield text
            if rule.applies_to("tool_output"):
                yield replace(text, stage="tool_output", value=result)


def masked_runs(user: AnyUser, runs: Collection[int]) -> frozenset[int]:
    """Return which of these runs are masked for this user."""
    if user.has_perm(masking.UNMASK_PERMISSION):
        return frozenset()
    loaded = Run.objects.filter(pk__in=runs).only("user", "topic", "origin", "origin_step")
    return frozenset(
        run.pk for run in masking.load_origins(loaded) if not masking.is_participant(run, user)
    )
