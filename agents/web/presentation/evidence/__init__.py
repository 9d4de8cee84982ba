"""Evidence for an answer: which observations and passages its statements come from.

`find_evidence` links citations such as [1] and figures of an answer's HTML to the run's
observations. Work is bounded: each module has its limits.
"""

from .annotator import Link
from .answers import STEP_LINK, Evidence, find_evidence
from .sources import Observation, Sources, observed, shared_by, sources_of
from .table_rows import cited_rows, statements_citing

__all__ = [
    "Evidence",
    "Link",
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
