"""What a model is asked, and what its words mean: the planner and the ReAct dialect."""

from .react_parser import parse_react
from .react_planner import ReActPlanner

__all__ = ["ReActPlanner", "parse_react"]
