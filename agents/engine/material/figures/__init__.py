"""Figures of an answer: whether they are in the results of its run, or follow from them."""

from .drafts import SENTENCE_END, unsupported_figures
from .index import FigureIndex, Match, Place, Places
from .names import has_known_name
from .operands import Computation, Operand
from .parsing import DIGIT, Figure, figures_in, half_width
from .reader import FigureReader, Finding, Status

__all__ = [
    "DIGIT",
    "Computation",
    "Figure",
    "FigureIndex",
    "FigureReader",
    "Finding",
    "Match",
    "Operand",
    "Place",
    "Places",
    "SENTENCE_END",
    "Status",
    "figures_in",
    "half_width",
    "has_known_name",
    "unsupported_figures",
]
