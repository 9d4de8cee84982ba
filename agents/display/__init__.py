"""A run as people see it: rows → what the templates show, live and afterwards alike."""

from .approvals import ApprovalView
from .comments import Thread
from .outline import Outline
from .places import text_url, trace_url
from .plans import PlanView
from .runs import BARE, BRIEF, FULL, RunView, model_label, rows, step_views, unfolded
from .steps import MOST_THOUGHT, StepView

__all__ = [
    "BARE",
    "BRIEF",
    "FULL",
    "MOST_THOUGHT",
    "ApprovalView",
    "Outline",
    "PlanView",
    "RunView",
    "StepView",
    "Thread",
    "model_label",
    "rows",
    "step_views",
    "text_url",
    "trace_url",
    "unfolded",
]
