"""The history as ReAct text, for models without native tool calls."""

from collections.abc import Sequence

from agents.engine.attachments import refs_of
from agents.engine.state import OBSERVATION_PREFIX, Message


def react_history(history: Sequence[Message]) -> list[Message]:
    """Return the history without tool calls, for a model without them.

    Results of several tools become one message, separate from the user's next one.
    """
    messages: list[Message] = []
    follows_tool = False
    for message in history:
        role, content = _react_message(message)
        if follows_tool and message["role"] == "tool":
            messages[-1]["content"] += f"\n{content}"
            refs = refs_of(messages[-1]) + refs_of(message)
            messages[-1] |= {"attachments": refs} if refs else {}
        else:
            messages.append({"role": role, "content": content} | attachment_refs(message))
        follows_tool = message["role"] == "tool"
    return messages


def attachment_refs(message: Message) -> Message:
    refs = refs_of(message)
    return {"attachments": refs} if refs else {}


def _react_message(message: Message) -> tuple[str, str]:
    content = message["content"] or ""
    if message["role"] == "tool":
        return "user", f"{OBSERVATION_PREFIX}{content}"
    if message["role"] != "assistant":
        return message["role"], content
    if calls := message.get("tool_calls"):
        lines = [f"Thought: {content}"] if content else []
        for call in calls:
            function = call["function"]
            lines += [f"Action: {function['name']}", f"Action Input: {function['arguments']}"]
        return "assistant", "\n".join(lines)
    return "assistant", f"Final Answer: {content}"
