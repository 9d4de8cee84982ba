"""The history as ReAct text or JSON, for models without native tool calls."""

import json
from collections.abc import Sequence
from typing import Any

from agents.engine.attachments import refs_of
from agents.engine.state import OBSERVATION_PREFIX, Message


def react_history(history: Sequence[Message], *, by_schema: bool = False) -> list[Message]:
    """Return the history without tool calls, for a model without them.

    What the model said has the form in which it replies: JSON, if that is `by_schema`. Results
    of several tools become one message, separate from the user's next one.
    """
    messages: list[Message] = []
    follows_tool = False
    for message in history:
        role = message["role"]
        content = message["content"] or ""
        if role == "tool":
            content = f"{OBSERVATION_PREFIX}{content}"
        elif role == "assistant" and by_schema:
            content = _json_reply(message)
        elif role == "assistant" and (calls := message.get("tool_calls")):
            lines = [f"Thought: {content}"] if content else []
            for call in calls:
                name = call["function"]["name"]
                lines += [f"Action: {name}", f"Action Input: {call['function']['arguments']}"]
            content = "\n".join(lines)
        elif role == "assistant":
            content = f"Final Answer: {content}"
        if follows_tool and role == "tool":
            messages[-1]["content"] += f"\n{content}"
            refs = refs_of(messages[-1]) + refs_of(message)
            messages[-1] |= {"attachments": refs} if refs else {}
        else:
            author = "user" if role == "tool" else role
            messages.append({"role": author, "content": content} | attachment_refs(message))
        follows_tool = role == "tool"
    return messages


def _json_reply(message: Message) -> str:
    content = message["content"] or ""
    replies: list[dict[str, Any]] = [
        {
            "thought": content,
            "action": call["function"]["name"],
            "action_input": json.loads(call["function"]["arguments"]),
        }
        for call in message.get("tool_calls") or ()
    ]
    return "\n".join(
        json.dumps(reply, ensure_ascii=False)
        for reply in replies or [{"final_answer": content}]
    )


def attachment_refs(message: Message) -> Message:
    refs = refs_of(message)
    return {"attachments": refs} if refs else {}
