"""Checks exchanges that no guardrail has seen before they become part of an agent's history.

A message is checked when it is sent, and an answer while it is written. Imported ones never
were, so the guardrails of the agent that answers now are applied to them instead. The trace
displays the result, because it has the history as the model got it.
"""

from agents.engine.guardrails import Guardrails
from agents.engine.state import Message

# For the model, in place of an exchange that is left out.
QUESTION_LEFT_OUT = "[This message was left out because a guardrail blocks it.]"
ANSWER_LEFT_OUT = "[This answer was left out because a guardrail blocks it.]"


def screen(messages: list[Message], guardrails: Guardrails | None) -> list[Message]:
    """Return an exchange masked as the guardrails require, without what they block.

    Length limits are for a new message; a long history is shortened to the context window.
    """
    if guardrails is None:
        return messages
    without_limits = guardrails.without_length_limits()
    screened: list[Message] = []
    for message in messages:
        content = message["content"]
        if message["role"] in {"user", "assistant"} and content:
            is_question = message["role"] == "user"
            inspected = without_limits.inspect(content, "input" if is_question else "output")
            content = inspected.text
            if inspected.is_blocked:
                content = QUESTION_LEFT_OUT if is_question else ANSWER_LEFT_OUT
        screened.append({**message, "content": content})
    return screened
