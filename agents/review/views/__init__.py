from .listing import run_list
from .runs import run

__all__ = ["run", "run_list"]
