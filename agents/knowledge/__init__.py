"""Documents: reading, chunking and search."""

from .chunking import CHUNK_SIZE, Section, split_document
from .documents import IngestResult, asearch, ingest, ingest_text, search
from .readers import MAX_BYTES, UnreadableDocument, decode, find_files, read_file
from .tokenizer import MAX_TERMS, query_terms

__all__ = [
    "CHUNK_SIZE",
    "MAX_BYTES",
    "MAX_TERMS",
    "IngestResult",
    "Section",
    "UnreadableDocument",
    "ingest_text",
    "asearch",
    "decode",
    "find_files",
    "ingest",
    "read_file",
    "search",
    "split_document",
    "query_terms",
]
