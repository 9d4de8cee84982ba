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
from .runs import run

__all__ = [
    "annotate",
    "assign",
    "correct",
    "decide",
    "flag",
    "keep",
    "label",
    "note",
    "rate",
    "open_reviews",
    "review_queue",
    "run",
    "run_list",
    "step_review",
]
