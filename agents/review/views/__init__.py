from .judging import (
    annotate,
    assign,
    correct,
    decide,
    flag,
    keep,
    label,
    note,
    open_reviews,
    rate,
    review_queue,
    step_review,
)
from .listing import run_list
from .runs import payload, run, step, steps

__all__ = [
    "annotate",
    "assign",
    "correct",
    "decide",
    "flag",
    "keep",
    "label",
    "note",
    "open_reviews",
    "payload",
    "rate",
    "review_queue",
    "run",
    "run_list",
    "step",
    "step_review",
    "steps",
]
