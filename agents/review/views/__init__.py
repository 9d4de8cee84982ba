from .listing import run_list
from .replays import replayed, scene
from .runs import payload, run, step, steps

__all__ = ["payload", "replayed", "run", "run_list", "scene", "step", "steps"]
