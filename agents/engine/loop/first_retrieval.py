"""The search that an agent makes before its first turn, without asking its model."""

import json
from uuid import uuid4

from agents.engine.state import OBSERVATION_PREFIX, Message
from agents.engine.turn.assembly import ToolCall

from .run_state import RunState

MAX_QUERY_CHARS = 2_000
SHORT_QUESTION_CHARS = 60


def retrieval_call(run_state: RunState, tool: str) -> ToolCall:
    """Return a search for the question; a short one is also searched with the one before it."""
    question = run_state.query.strip()[:MAX_QUERY_CHARS]
    arguments: dict[str, object] = {"query": question}
    earlier = _earlier_question(run_state.state.get_messages(), run_state.query)
    if earlier and len(question) <= SHORT_QUESTION_CHARS:
        arguments["queries"] = [f"{earlier} {question}"[:MAX_QUERY_CHARS]]
    written = json.dumps(arguments, ensure_ascii=False)
    return ToolCall(id=f"call_{uuid4().hex[:12]}", name=tool, arguments=written)


def _earlier_question(messages: list[Message], question: str) -> str:
    asked = [
        str(message["content"])
        for message in messages
        if message["role"] == "user" and message["content"] != question
    ]
    return next((q for q in reversed(asked) if not q.startswith(OBSERVATION_PREFIX)), "")
