"""Evidence for an answer: which observations and passages its statements come from.

`find_evidence` cites them after the sentences of an answer: what the model cited itself, such
as [1], and what has its figures. Work is bounded: each module has its limits.
"""

from .annotator import Link, NumberedSource
from .answers import STEP_LINK, Evidence, find_evidence
from .sources import Observation, Sources, observed, shared_by, sources_of
from .table_rows import cited_rows, statements_citing

__all__ = [
    "Evidence",
    "Link",
    "NumberedSource",
    "Observation",
    "STEP_LINK",
    "Sources",
    "cited_rows",
    "find_evidence",
    "observed",
    "shared_by",
    "sources_of",
    "statements_citing",
]
