"""Checks the figures of a draft, and sends it back once if no result has some of them."""

from collections.abc import Sequence
from datetime import datetime

from agents.engine.material.delimiters import unwrap
from agents.engine.material.figures import unsupported_figures
from agents.engine.planner.model_request import ModelRequest
from agents.engine.state import Message

from ..capability import Capability
from ..run_state import RunState

CORRECTION = """\
These figures aren't in any result: {figures}. Correct or remove them, or say that they are \
estimates. Then give the complete answer again, in the language of the question."""


class FigureCheck(Capability):
    """Has the model correct figures that no result has, before the answer. It costs a turn."""

    def unsupported(
        self, run_state: RunState, request: ModelRequest, draft: str, now: datetime
    ) -> list[str]:
        """Return the figures of a draft that neither a result nor its request has."""
        messages = run_state.state.get_messages()
        results = [text for m in messages if m["role"] == "tool" and (text := _text(m))]
        sent = [_text(m) for m in (*messages, *request.messages) if m["role"] != "tool"]
        known = "\n".join([run_state.query, now.date().isoformat(), *map(unwrap, sent)])
        return unsupported_figures(draft, results, known)


def correction_messages(draft: str, figures: Sequence[str]) -> list[Message]:
    """Return what the model is sent after its draft."""
    listed = ", ".join(figures)
    return [
        {"role": "assistant", "content": draft},
        {"role": "user", "content": CORRECTION.format(figures=listed)},
    ]


def _text(message: Message) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else ""
