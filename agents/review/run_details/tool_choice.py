"""Which of many tools a model was sent, with the reasons, as the trace displays them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from django.utils.translation import gettext as _


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolChoice:
    """The tools that were sent, and the names of the others."""

    sent: list[dict[str, Any]]
    left_out: list[str]
    total: int

    @classmethod
    def from_note(cls, note: Mapping[str, Any]) -> Self:
        reasons = {
            "pinned": _("always sent"),
            "used": _("used in this chat"),
            "exact": _("named in the question"),
            "search": _("fits the question"),
            "earlier": _("sent with the previous question"),
        }
        return cls(
            sent=[
                {**tool, "reason": reasons.get(tool["why"], tool["why"])}
                for tool in note["sent"]
            ],
            left_out=note["left_out"],
            total=len(note["sent"]) + note["count"],
        )
