"""A run for display: its rows, answer, feedback and times."""

from .rows import BARE, BRIEF, FULL, step_views, visible_steps
from .view import RunView, model_label

__all__ = [
    "BARE",
    "BRIEF",
    "FULL",
    "RunView",
    "model_label",
    "step_views",
    "visible_steps",
]
