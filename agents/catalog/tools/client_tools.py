"""The functions that a program gives an agent for one run."""

from agents.engine.loop import ClientTool
from agents.models import Run

OVERRIDE = "client_tools"  # the key in `Run.overrides`


def for_run(run: Run) -> tuple[ClientTool, ...]:
    """Return the functions of the run's program."""
    return tuple(ClientTool(**definition) for definition in run.overrides.get(OVERRIDE, ()))
