"""The models of reviews; other packages import them from here."""

from .annotations import Comment, Label, Note, Rating
from .examples import DEFAULT_SET_NAME, Example, ExampleSet
from .fields import MAX_NAME_CHARS
from .queues import QUEUE_PERMISSION, REVIEW_PERMISSION, Criterion, Review, ReviewQueue, Score
from .sharing import SavedView, ShareLink

__all__ = [
    "Comment",
    "Criterion",
    "DEFAULT_SET_NAME",
    "Example",
    "ExampleSet",
    "Label",
    "MAX_NAME_CHARS",
    "Note",
    "QUEUE_PERMISSION",
    "REVIEW_PERMISSION",
    "Rating",
    "Review",
    "ReviewQueue",
    "SavedView",
    "Score",
    "ShareLink",
]
