from .comparing import compare, compare_with, find_comparison
from .listing import run_list
from .rerunning import again, rerun, stop
from .runs import payload, run, step, steps

__all__ = [
    "again",
    "compare",
    "compare_with",
    "find_comparison",
    "payload",
    "rerun",
    "run",
    "run_list",
    "step",
    "steps",
    "stop",
]
