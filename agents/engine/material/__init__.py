"""What a run has read: numbered passages, citations of them, and text from outside."""

from .citations import CITATION, CitationCheck, check_citations
from .delimiters import unwrap, wrap_untrusted
from .injection import find_instructions
from .output_citations import output_numbers
from .run_material import PASSAGE_HEAD, RunMaterial, Source, passage_texts, recorded_sources

__all__ = [
    "CITATION",
    "CitationCheck",
    "PASSAGE_HEAD",
    "RunMaterial",
    "Source",
    "check_citations",
    "find_instructions",
    "output_numbers",
    "passage_texts",
    "recorded_sources",
    "unwrap",
    "wrap_untrusted",
]
