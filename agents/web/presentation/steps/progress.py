"""A running call's progress for display."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from django.utils.translation import gettext as _

from agents.db.sentences import translate
from agents.engine.events import StatusKind

from ..markdown import reveal_invisible


@dataclass(frozen=True, slots=True)
class ProgressView:
    """The last progress a call reported; without a total, how much is left is unknown."""

    value: float
    total: float | None = None
    message: str = ""

    @classmethod
    def of(cls, notes: Iterable[Mapping[str, Any]]) -> Self | None:
        """Return the progress among a step's notes, if any."""
        facts = next((n for n in notes if n.get("kind") == StatusKind.TOOL_PROGRESS), None)
        if facts is None or not _is_number(facts["progress"]):
            return None
        message = reveal_invisible(translate(str(facts["message"])))
        total = facts["total"] if _is_number(facts["total"]) else None
        return cls(facts["progress"], total, message)

    @property
    def percent(self) -> int | None:
        return None if self.total is None else round(min(1.0, self.value / self.total) * 100)

    @property
    def label(self) -> str:
        return self.message or _("In progress")

    @property
    def sentence(self) -> str:
        """The last progress of a call that has ended."""
        facts = {"percent": self.percent, "message": self.message}
        if self.percent is None:
            return _("Last progress: %(message)s") % facts if self.message else ""
        if not self.message:
            return _("Last progress: %(percent)s%%") % facts
        return _("Last progress: %(percent)s%%, %(message)s") % facts


def _is_number(value: object) -> bool:
    """Whether it is a number; a masked note may have text instead."""
    return isinstance(value, int | float)
