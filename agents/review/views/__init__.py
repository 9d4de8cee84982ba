from .listing import run_list
from .runs import payload, run, step, steps

__all__ = ["payload", "run", "run_list", "step", "steps"]
