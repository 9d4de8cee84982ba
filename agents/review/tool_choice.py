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
        sent = [{**tool, "reason": _reason(tool["why"])} for tool in note["sent"]]
        return cls(sent=sent, left_out=note["left_out"], total=len(sent) + note["count"])


def _reason(why: str) -> str:
    reasons = {
        "pinned": _("always sent"),
        "used": _("used in this chat"),
        "exact": _("named in the question"),
        "search": _("fits the question"),
        "earlier": _("sent with the question before"),
    }
    return reasons.get(why, why)
