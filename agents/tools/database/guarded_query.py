"""What the SQL guard returns or raises, for modules that don't load its parser."""

from dataclasses import dataclass

from agents.engine.errors import ToolError
from agents.engine.sentences import Sentence as _


class QueryRefused(ToolError):
    message = _("This query can't be run.")


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardedQuery:
    """A query that passed the checks."""

    sql: str
