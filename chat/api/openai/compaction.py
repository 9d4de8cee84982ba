"""Compaction: a conversation as one item, which only its user can send back.

A short conversation is kept as it is. Of a longer one, the agent's model writes a summary.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from agents.catalog import agent_factory
from agents.catalog.language_models import model_setups
from agents.db import database
from agents.db.sentences import translate
from agents.engine.errors import AgentError
from agents.engine.history_summary import summary_messages
from agents.engine.loop import SUMMARY_INSTRUCTIONS, SUMMARY_TOKENS
from agents.engine.state import Message
from agents.models import Agent, Run
from agents.models.secret import EncryptedValue, UnreadableSecret, encrypt
from agents.web.api_errors import ApiError

from ..calls import Caller

MAX_KEPT_CHARS = 4_000
MAX_PROMPT_CHARS = 40_000  # of a longer one, the model is sent its end


async def seal(
    caller: Caller, agent: Agent, messages: Sequence[Message]
) -> tuple[str, Mapping[str, Any]]:
    """Return these messages as an opaque text, and what a summary of them has used."""
    lines = [_line(message) for message in messages]
    usage: Mapping[str, Any] = {}
    if sum(map(len, lines)) > MAX_KEPT_CHARS:
        text, usage = await _summarize(caller, agent, lines)
        messages = summary_messages(text)
    return encrypt({"user": caller.user.pk, "messages": list(messages)}).token, usage


def read(caller: Caller, sealed: str) -> list[Message]:
    """Return the messages in a compaction item. Raises ApiError if it isn't the caller's."""
    try:
        value = EncryptedValue(sealed).reveal()
    except (UnreadableSecret, ValueError):
        value = None
    if not isinstance(value, dict) or value.get("user") != caller.user.pk:
        sentence = _("This compaction item can’t be read. Send the conversation itself.")
        raise ApiError(400, sentence, "invalid_compaction", param="input")
    messages: list[Message] = value["messages"]
    return messages


async def _summarize(
    caller: Caller, agent: Agent, lines: Sequence[str]
) -> tuple[str, Mapping[str, Any]]:
    """Have the agent's model write a summary, which counts as its user's usage."""
    prompt: list[Message] = [
        {"role": "system", "content": SUMMARY_INSTRUCTIONS},
        {"role": "user", "content": "\n\n".join(lines)[-MAX_PROMPT_CHARS:]},
    ]
    run = Run(
        user=caller.user,
        agent=agent,
        agent_name=agent.name,
        api_key=caller.key,
        model=await database.run(model_setups.model_name, agent),
    )
    try:
        model = await database.run(agent_factory.load_model, run)
        reply = await model.ask(prompt, max_tokens=SUMMARY_TOKENS)
    except AgentError as reason:
        raise ApiError(502, translate(str(reason)), "model_error") from reason
    return reply.text, reply.usage


def _line(message: Message) -> str:
    text = message.get("content") or ""
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    called = [f"{call['name']}({call['arguments']})" for call in calls]
    return f"{message['role']}: {' '.join(filter(None, [text, *called]))}"
