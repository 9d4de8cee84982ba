"""The search that an agent makes before its first turn, without asking its model."""

import json
from typing import TYPE_CHECKING
from uuid import uuid4

from agents.engine.events import Event
from agents.engine.state import OBSERVATION_PREFIX
from agents.engine.turn.assembly import ToolCall

from .capability import Capability
from .run_state import RunState

if TYPE_CHECKING:
    from .run_loop import RunLoop

MAX_QUERY_CHARS = 2_000
SHORT_QUESTION_CHARS = 60


class FirstRetrieval(Capability):
    """Searches for the question with this tool before the first turn."""

    def __init__(self, tool: str) -> None:
        self.tool = tool

    async def before_run(self, run: "RunLoop") -> list[Event]:
        run_state = run.run_state
        is_new = run_state.turn == 0 and not run_state.progress.total()
        if not is_new or not run.tools.has(self.tool):
            return []
        call = retrieval_call(run_state, self.tool)
        # A search that a person must approve is left to the model.
        if json.loads(call.arguments)["query"] and not run.approval_policy.why(call):
            run.open_with(call)
        return []


def retrieval_call(run_state: RunState, tool: str) -> ToolCall:
    """Return a search for the question; a short one is also searched with the one before it."""
    question = run_state.query.strip()[:MAX_QUERY_CHARS]
    arguments: dict[str, object] = {"query": question}
    earlier_questions = [
        text
        for message in run_state.state.get_messages()
        if message["role"] == "user"
        and message["content"] != run_state.query
        and not (text := str(message["content"])).startswith(OBSERVATION_PREFIX)
    ]
    if earlier_questions and earlier_questions[-1] and len(question) <= SHORT_QUESTION_CHARS:
        arguments["queries"] = [f"{earlier_questions[-1]} {question}"[:MAX_QUERY_CHARS]]
    arguments_json = json.dumps(arguments, ensure_ascii=False)
    return ToolCall(id=f"call_{uuid4().hex[:12]}", name=tool, arguments=arguments_json)
