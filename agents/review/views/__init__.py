from .listing import run_list
from .replays import replayed, scene
from .runs import run

__all__ = ["replayed", "run", "run_list", "scene"]
