"""Reads an OpenAPI document into operations that can become HTTP tools.

OpenAPI 3.0 and 3.1 and Swagger 2.0, as JSON or YAML. An operation that can't become a tool has
a reason, and doesn't stop the others.
"""

from .document import MAX_DOCUMENT_BYTES, ApiDocument, read_document
from .errors import BadDocument
from .operations import MAX_NAME_CHARS, Operation, tool_name
from .security import SecurityScheme

__all__ = [
    "ApiDocument",
    "BadDocument",
    "MAX_DOCUMENT_BYTES",
    "MAX_NAME_CHARS",
    "Operation",
    "SecurityScheme",
    "read_document",
    "tool_name",
]
