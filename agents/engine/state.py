"""An agent's memory during a run: messages and steps."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from .sentences import Sentence as _
from .sentences import as_error

Message = dict[str, Any]

OBSERVATION_PREFIX = "Observation: "  # prefix of a tool result for a text model
INTERRUPTED = as_error(_("interrupted before it finished; the outcome is unknown."))
NOT_STARTED = as_error(_("not started; the run was stopped before this call."))


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStep:
    """One round of thought, action and observation. Without an action it was the last."""

    thought: str = ""
    action: str | None = None
    action_input: Any = None
    observation: str | None = None


class AgentState:
    """The history in the format sent to models, and the steps of this run.

    `max_history` is counted in messages and trimmed in whole exchanges, because models reject a
    tool result without its call.
    """

    def __init__(self, max_history: int = 50) -> None:
        self.max_history = max_history
        # What comes with the question: `material` (text of files) and `attachments`.
        self.question: Message = {}
        self._messages: list[Message] = []
        self._steps: list[AgentStep] = []

    def add_message(self, role: str, content: str | None, **fields: Any) -> None:
        text = None if content is None else replace_surrogates(content)
        self._messages.append({"role": role, "content": text, **fields})
        if len(self._messages) > self.max_history:
            self._messages = trim_messages(self._messages, self.max_history)

    def add_question(self, query: str) -> None:
        """Add the user's question with the files that come with it."""
        self.add_message("user", query, **self.question)

    def replace_message(self, role: str, content: str, instead: str) -> None:
        """Replace the last message with this content."""
        for index, message in reversed(list(enumerate(self._messages))):
            if message["role"] == role and message["content"] == replace_surrogates(content):
                self._messages[index] = {**message, "content": replace_surrogates(instead)}
                return

    def map_material(self, change: Callable[[str], str]) -> None:
        """Change the text of files, in the question and in earlier messages."""
        self._messages = [_map_material(message, change) for message in self._messages]
        self.question = _map_material(self.question, change)

    def leave_out_unjudged(self, roles: Collection[str], instead: str) -> None:
        """Replace the unjudged messages of these roles; the others count as judged."""
        for index, message in enumerate(self._messages):
            if "is_unjudged" in message:
                judged = {key: item for key, item in message.items() if key != "is_unjudged"}
                if message["role"] in roles:
                    judged["content"] = instead
                self._messages[index] = judged

    def replace_first(self, count: int, messages: Sequence[Message]) -> None:
        """Replace the oldest messages, e.g. by their summary."""
        self._messages[:count] = messages

    def add_step(self, step: AgentStep) -> None:
        self._steps.append(step)

    def get_messages(self) -> list[Message]:
        return list(self._messages)

    def get_steps(self) -> list[AgentStep]:
        return list(self._steps)

    def clear(self) -> None:
        self._messages.clear()
        self._steps.clear()

    def close_calls(self, content: str = INTERRUPTED) -> None:
        """Answer every tool call that has no result, so that the next request is valid."""
        self._messages = repair_history(self._messages, content)

    def to_dict(self) -> dict[str, Any]:
        return {
            "max_history": self.max_history,
            "messages": self._messages,
            "steps": [asdict(step) for step in self._steps],
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        state = cls(value["max_history"])
        state._messages = list(value["messages"])
        state._steps = [AgentStep(**step) for step in value["steps"]]
        return state


def _map_material(message: Message, change: Callable[[str], str]) -> Message:
    if "material" not in message:
        return message
    return {**message, "material": change(message["material"])}


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which no request can contain."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def trim_messages(messages: Sequence[Message], size: int) -> list[Message]:
    """Keep the newest messages, starting with a user's; at least the last exchange."""
    starts = question_indexes(messages)
    starts = [index for index in starts if len(messages) - index <= size] or starts[-1:]
    return list(messages[starts[0] :]) if starts else list(messages)


def question_indexes(messages: Sequence[Message]) -> list[int]:
    """Return where the exchanges start: user messages, not tool results."""
    return [
        index
        for index, message in enumerate(messages)
        if message["role"] == "user"
        and not str(message["content"]).startswith(OBSERVATION_PREFIX)
    ]


def message_chars(messages: Sequence[Message]) -> int:
    return sum(len(message["content"] or "") for message in messages)


def repair_history(messages: Sequence[Message], missing: str = INTERRUPTED) -> list[Message]:
    """Return the history with one result per call and no result without a call."""
    history: list[Message] = []
    open_calls: dict[str, None] = {}
    for message in messages:
        if message["role"] == "tool":
            if message.get("tool_call_id") not in open_calls:
                continue
            del open_calls[message["tool_call_id"]]
        else:
            history += _missing_results(open_calls, missing)
            open_calls = {call["id"]: None for call in message.get("tool_calls") or ()}
        history.append(message)
    return history + _missing_results(open_calls, missing)


def _missing_results(calls: Mapping[str, None], content: str) -> list[Message]:
    return [{"role": "tool", "tool_call_id": call, "content": content} for call in calls]
