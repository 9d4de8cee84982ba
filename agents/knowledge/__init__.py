"""Documents: reading, chunking and search."""

from .chunking import CHUNK_SIZE, split_parts
from .documents import (
    IngestResult,
    default_collection,
    index_document,
    ingest,
    ingest_text,
    search,
)
from .parsing import ParsedPart
from .readers import MAX_BYTES, UnreadableDocument, decode, find_files, read_file
from .retrieval import find

__all__ = [
    "CHUNK_SIZE",
    "MAX_BYTES",
    "IngestResult",
    "ParsedPart",
    "UnreadableDocument",
    "decode",
    "default_collection",
    "find",
    "find_files",
    "index_document",
    "ingest",
    "ingest_text",
    "read_file",
    "search",
    "split_parts",
]
