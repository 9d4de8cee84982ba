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
from .exports import export_json, export_markdown
from .judging import (
from .listing import completions, delete_view, run_list, save_view
from .listing import run_list
from .runs import payload, run, step, steps
from .sharing import revoke, share, shared
from .unmasking import unmask

__all__ = [
    "annotate",
    "assign",
    "completions",
    "correct",
    "decide",
    "delete_view",
    "export_json",
    "export_markdown",
    "flag",
    "keep",
    "label",
    "note",
    "open_reviews",
    "payload",
    "rate",
    "review_queue",
    "revoke",
    "run",
    "run_list",
    "save_view",
    "share",
    "shared",
    "step",
    "step_review",
    "steps",
    "unmask",
]
