"""A run as people see it: rows → what the templates show, live and afterwards alike."""

from .approvals import ApprovalView
from .comments import Thread
from .links import text_url, trace_url
from .plan_view import PlanView
from .run_view import BARE, BRIEF, FULL, RunView, model_label, rows, step_views, unfolded
from .step_order import Outline
from .step_view import MOST_THOUGHT, StepView

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
