"""A run as people see it: rows → what the templates show, live and afterwards alike."""

from .approvals import ApprovalView
from .comments import Thread
from .outline import Outline
from .places import trace_url
from .plans import PlanView
from .runs import RunView, model_label, rows, step_views, unfolded
from .steps import StepView

__all__ = [
    "ApprovalView",
    "Outline",
    "PlanView",
    "RunView",
    "StepView",
    "Thread",
    "model_label",
    "rows",
    "step_views",
    "trace_url",
    "unfolded",
]
