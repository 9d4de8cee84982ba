from .listing import completions, delete_view, run_list, save_view
from .runs import run

__all__ = ["completions", "delete_view", "run", "run_list", "save_view"]
