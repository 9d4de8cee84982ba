from .listing import completions, delete_view, run_list, save_view
from .runs import payload, run, step, steps

__all__ = [
    "completions",
    "delete_view",
    "payload",
    "run",
    "run_list",
    "save_view",
    "step",
    "steps",
]
