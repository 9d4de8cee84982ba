"""What a run has read: numbered passages, citations of them, and text from outside."""

from .citations import CITATION, CitationCheck, check_citations
from .delimiters import unwrap, wrap_untrusted
from .injection import find_instructions
from .output_citations import output_numbers
from .passages import (
    PASSAGE_HEAD,
    PLACES,
    Passage,
    format_passages,
    parse_passages,
    recorded_passages,
)
from .run_material import RunMaterial

__all__ = [
    "CITATION",
    "CitationCheck",
    "PASSAGE_HEAD",
    "PLACES",
    "Passage",
    "RunMaterial",
    "check_citations",
    "find_instructions",
    "format_passages",
    "output_numbers",
    "parse_passages",
    "recorded_passages",
    "unwrap",
    "wrap_untrusted",
]
