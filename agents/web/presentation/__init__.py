"""Turns runs into what templates display, live and afterwards alike."""

from .comments import CommentThread
from .decisions.approvals import ApprovalView, steps_of
from .formats.links import text_url, trace_url
from .plans.plan_view import PlanView
from .run_view import (
    BARE,
    BRIEF,
    EMBED,
    EMBED_QUIET,
    FULL,
    RunView,
    model_label,
    step_views,
    visible_steps,
)
from .steps.step_order import Outline
from .steps.step_view import MAX_THOUGHT_CHARS, StepView

__all__ = [
    "BARE",
    "BRIEF",
    "EMBED",
    "EMBED_QUIET",
    "FULL",
    "MAX_THOUGHT_CHARS",
    "ApprovalView",
    "Outline",
    "PlanView",
    "RunView",
    "StepView",
    "CommentThread",
    "model_label",
    "step_views",
    "steps_of",
    "text_url",
    "trace_url",
    "visible_steps",
]
