"""What an experiment will probably cost, from what the recorded runs used."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Avg

from agents.catalog.language_models import model_clients, model_setups
from agents.models import Agent, Run

from .sources.sources import Question

RECENT_RUNS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Model calls, tokens and dollars; `cost` is None if the model has no known price."""

    questions: int
    calls: int
    tokens: int
    cost: float | None


def estimate(questions: Sequence[Question], agent: Agent, tested: Agent) -> Estimate:
    """Return the estimate with the price of the tested agent's model."""
    recorded = [question.origin for question in questions if question.origin is not None]
    turns: float = sum(max(1, run.turns) for run in recorded)
    prompt: float = sum(run.prompt_tokens for run in recorded)
    completion: float = sum(run.completion_tokens for run in recorded)
    unrecorded = len(questions) - len(recorded)
    if unrecorded:
        # As much as this agent's recent runs used on average.
        recent = Run.objects.filter(agent=agent).order_by("-pk").values_list("pk", flat=True)
        average = Run.objects.filter(pk__in=list(recent[:RECENT_RUNS])).aggregate(
            turns=Avg("turns"), prompt=Avg("prompt_tokens"), completion=Avg("completion_tokens")
        )
        turns += unrecorded * max(1.0, average["turns"] or 2.0)
        prompt += unrecorded * (average["prompt"] or 1_500)
        completion += unrecorded * (average["completion"] or 200)
    model = model_setups.model_name(tested)
    price = model_clients.model_price(model)
    usage = {"prompt_tokens": int(prompt), "completion_tokens": int(completion)}
    free = 0.0 if model == "demo" else None
    return Estimate(
        questions=len(questions),
        calls=round(turns),
        tokens=round(prompt + completion),
        cost=price.of(usage) if price else free,
    )
