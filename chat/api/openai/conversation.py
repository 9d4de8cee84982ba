"""Messages of chat completions as an agent's question, its history and its instructions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from django.utils.translation import gettext as _

from agents.engine.state import Message, repair_history
from agents.web.api_errors import ApiError

from .. import files as sent_files
from ..client_tools import FunctionResult
from ..files import SentFile
from .schemas import AudioPart, ChatMessage, FilePart, ImagePart, RefusalPart, TextPart


@dataclass(slots=True)
class Conversation:
    """What a request says, as the parts of a question.

    `results` are those of functions at its end: the run that waits for them continues.
    """

    text: str = ""
    files: Sequence[SentFile] = ()
    history: list[Message] = field(default_factory=list)
    instructions: str = ""
    results: list[FunctionResult] = field(default_factory=list)


def build(instructions: Sequence[str], messages: Sequence[Message]) -> Conversation:
    """Return the conversation of these messages, the last question apart.

    If something follows the question, such as a function's result, the question is asked again
    after it. Raises ApiError if there is none.
    """
    questions = [index for index, message in enumerate(messages) if message["role"] == "user"]
    if not questions:
        raise ApiError(400, _("Send a message of the user."), "no_question", param="messages")
    last = questions[-1]
    question = messages[last]
    is_last = last == len(messages) - 1
    results: list[FunctionResult] = []
    for message in reversed(messages):
        if message["role"] != "tool":
            break
        result = FunctionResult(call=message["tool_call_id"], text=message["content"] or "")
        results.insert(0, result)
    sent: Sequence[SentFile] = question.get("files", ())
    return Conversation(
        text=question["content"] or ", ".join(file.name for file in sent),
        files=sent,
        history=repair_history(list(messages[:last] if is_last else messages)),
        instructions="\n\n".join(filter(None, instructions)),
        results=results,
    )


async def read(chat_messages: Sequence[ChatMessage]) -> Conversation:
    """Return what these messages say. Raises ApiError if they make no sense."""
    instructions: list[str] = []
    messages: list[Message] = []
    names: dict[str, str] = {}
    contents = [message.content for message in chat_messages]
    sent_files.check_count(count_parts(contents, ImagePart | FilePart | AudioPart))
    for message in chat_messages:
        text, files = await _content(message)
        match message.role:
            case "system" | "developer":
                instructions.append(text)
            case "user":
                messages.append({"role": "user", "content": text} | files)
            case "assistant":
                messages.append(_assistant(message, text, names))
            case "tool":
                messages.append(tool_message(message.tool_call_id or "", text, names))
    return build(instructions, messages)


def count_parts(contents: Iterable[Any], kinds: Any) -> int:
    """Return how many parts of these kinds the contents of messages have."""
    lists = [content for content in contents if isinstance(content, list)]
    return sum(isinstance(part, kinds) for part in chain.from_iterable(lists))


def _assistant(message: ChatMessage, text: str, names: dict[str, str]) -> Message:
    calls = message.tool_calls or []
    names |= {call.id: call.function.name for call in calls}
    if not calls:
        return {"role": "assistant", "content": text}
    return {
        "role": "assistant",
        "content": text or None,
        "tool_calls": [
            function_call(call.id, call.function.name, call.function.arguments)
            for call in calls
        ],
    }


def function_call(id: str, name: str, arguments: str) -> dict[str, Any]:
    """Return a call as a message of the history has it."""
    return {
        "id": id,
        "type": "function",
        "function": {"name": name, "arguments": arguments or "{}"},
    }


def tool_message(call_id: str, text: str, names: Mapping[str, str]) -> Message:
    """Return a function's result, which is text from outside."""
    if call_id not in names:
        sentence = _("No call with the ID %(id)s is in the messages before its result.")
        raise ApiError(400, sentence % {"id": call_id[:100]}, "call_not_found")
    return {
        "role": "tool",
        "tool_call_id": call_id,
        "content": text,
        "untrusted": names[call_id],
    }


async def _content(message: ChatMessage) -> tuple[str, dict[str, Any]]:
    """Return a message's text and its files."""
    if message.content is None or isinstance(message.content, str):
        return message.content or "", {}
    texts: list[str] = []
    files: list[SentFile] = []
    for part in message.content:
        match part:
            case TextPart(text=text) | RefusalPart(refusal=text):
                texts.append(text)
            case ImagePart(image_url=address):
                files.append(await sent_files.fetch(address.url))
            case FilePart(file=file):
                files.append(sent_files.decode(file.file_data or "", file.filename or ""))
            case AudioPart(input_audio=audio):
                files.append(sent_files.decode(audio.data, f"audio.{audio.format}"))
    if files and message.role != "user":
        raise ApiError(400, _("Only messages of the user can have files."), "invalid_file")
    return "\n\n".join(texts), {"files": files} if files else {}
