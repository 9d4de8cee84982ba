"""What a model call of a made-up run used, where figures read it: as an event."""

from agents.engine.events import EventType
from agents.models import Run, RunEvent


def record_usage(run: Run) -> Run:
    """Save the run's tokens and cost as those of one call of its model."""
    data = {
        "step": 1,
        "model": run.model,
        "prompt_tokens": run.prompt_tokens,
        "completion_tokens": run.completion_tokens,
        "cost": run.cost,
    }
    RunEvent.objects.create(
        run=run,
        seq=1,
        time=run.started_at,
        agent=run.agent_name,
        type=EventType.USAGE.value,
        data=data,
    )
    return run
