"""Documents are read, split into passages, and found again."""

from .chunking import CHUNK_SIZE, Section, split
from .documents import Ingested, add, asearch, ingest, search
from .readers import MAX_BYTES, Unreadable, decode, files_in, read
from .tokenizer import MAX_TERMS, terms_of

__all__ = [
    "CHUNK_SIZE",
    "MAX_BYTES",
    "MAX_TERMS",
    "Ingested",
    "Section",
    "Unreadable",
    "add",
    "asearch",
    "decode",
    "files_in",
    "ingest",
    "read",
    "search",
    "split",
    "terms_of",
]
