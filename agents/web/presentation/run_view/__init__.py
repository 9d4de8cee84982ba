"""A run for display: its rows, answer, feedback and times."""

from .rows import BARE, BRIEF, EMBED, EMBED_QUIET, FULL, step_views, visible_steps
from .view import RunView, model_label

__all__ = [
    "BARE",
    "BRIEF",
    "EMBED",
    "EMBED_QUIET",
    "FULL",
    "RunView",
    "model_label",
    "step_views",
    "visible_steps",
]
