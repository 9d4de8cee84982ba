"""Documents: reading, chunking and search."""

from .chunking import CHUNK_SIZE, split_parts
from .documents import (
    IngestResult,
    afind,
    asearch,
    default_collection,
    index_document,
    ingest,
    ingest_text,
    search,
)
from .parsing import ParsedPart
from .readers import MAX_BYTES, UnreadableDocument, decode, find_files, read_file
from .retrieval import find
from .retrieval.tokenizer import MAX_TERMS, query_terms

__all__ = [
    "CHUNK_SIZE",
    "MAX_BYTES",
    "MAX_TERMS",
    "IngestResult",
    "ParsedPart",
    "UnreadableDocument",
    "afind",
    "asearch",
    "decode",
    "default_collection",
    "find",
    "find_files",
    "index_document",
    "ingest",
    "ingest_text",
    "query_terms",
    "read_file",
    "search",
    "split_parts",
]
