"""What an experiment will probably cost, from what the recorded runs used."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Avg

from agents.catalog import model_clients, model_setups
from agents.models import Agent, Run

from .sources import Question

RECENT_RUNS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Model calls, tokens and dollars; `cost` is None if the model has no known price."""

    questions: int
    calls: int
    tokens: int
    cost: float | None


@dataclass(frozen=True, slots=True)
class _Usage:
    turns: float
    prompt: float
    completion: float


def estimate(questions: Sequence[Question], agent: Agent, tested: Agent) -> Estimate:
    """Return the estimate with the price of the tested agent's model."""
    recorded = [
        _of_run(question.origin) for question in questions if question.origin is not None
    ]
    without = len(questions) - len(recorded)
    usages = [*recorded, *([_average(agent)] * without if without else [])]
    prompt = sum(estimated.prompt for estimated in usages)
    completion = sum(estimated.completion for estimated in usages)
    model = model_setups.model_name(tested)
    price = model_clients.model_price(model)
    usage = {"prompt_tokens": int(prompt), "completion_tokens": int(completion)}
    free = 0.0 if model == "demo" else None
    return Estimate(
        questions=len(questions),
        calls=round(sum(estimated.turns for estimated in usages)),
        tokens=round(prompt + completion),
        cost=price.of(usage) if price else free,
    )


def _of_run(run: Run) -> _Usage:
    return _Usage(max(1, run.turns), run.prompt_tokens, run.completion_tokens)


def _average(agent: Agent) -> _Usage:
    """Return what this agent's recent runs used on average."""
    recent = Run.objects.filter(agent=agent).order_by("-pk").values("pk")[:RECENT_RUNS]
    found = Run.objects.filter(pk__in=list(recent.values_list("pk", flat=True))).aggregate(
        turns=Avg("turns"), prompt=Avg("prompt_tokens"), completion=Avg("completion_tokens")
    )
    return _Usage(
        max(1.0, found["turns"] or 2.0), found["prompt"] or 1_500, found["completion"] or 200
    )
