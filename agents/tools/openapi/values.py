"""Values of a document that must have a certain type."""

from collections.abc import Mapping
from typing import Any

from agents.engine.sentences import Sentence as _

from .errors import BadDocument


def require_object(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadDocument(_("%(name)s must be an object.", name=repr(name)))
    return value


def list_or_empty(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
