"""What a front end sends: a question with its history, or results of the front end's tools."""

from collections.abc import Sequence
from typing import Any

from ag_ui.core import (
    AssistantMessage,
    DataSource,
    DeveloperMessage,
    Message,
    RunAgentInput,
    SystemMessage,
    TextPart,
    ToolMessage,
    UrlSource,
    UserMessage,
)
from django.http import HttpRequest
from django.utils.translation import gettext as _
from pydantic import ValidationError

from agents.engine.state import Message as HistoryMessage
from agents.engine.state import repair_history
from agents.web.api_errors import ApiError
from chat.api import client_tools, files
from chat.api.calls import Question
from chat.api.client_tools import Function, FunctionResult
from chat.api.files import SentFile

MAX_PROBLEMS = 5


def read(request: HttpRequest) -> RunAgentInput:
    """Return the input of a run. Raises ApiError with what is wrong."""
    try:
        return RunAgentInput.model_validate_json(request.read())
    except ValidationError as error:
        sentence = _("The request isn’t a valid RunAgentInput.")
        raise _invalid(sentence, error) from error


def _invalid(sentence: str, error: ValidationError) -> ApiError:
    problems = [
        {"field": ".".join(map(str, problem["loc"])), "message": problem["msg"]}
        for problem in error.errors(include_url=False, include_input=False)[:MAX_PROBLEMS]
    ]
    return ApiError(422, sentence, "invalid_input", errors=problems)


def results_of(run_input: RunAgentInput) -> list[FunctionResult]:
    """Return what the front end's tools have returned since the agent called them."""
    results: list[FunctionResult] = []
    for message in reversed(run_input.messages):
        if not isinstance(message, ToolMessage):
            break
        text = message.error or _text(message.content)
        result = FunctionResult(
            call=message.tool_call_id, text=text, is_error=message.error is not None
        )
        results.append(result)
    return results[::-1]


async def question_of(run_input: RunAgentInput, agent: str) -> Question:
    """Return the last message as a question, those before it as its history."""
    last = run_input.messages[-1] if run_input.messages else None
    if not isinstance(last, UserMessage):
        raise ApiError(422, _("The last message must be a user’s."), "no_question")
    notes = [
        message.content
        for message in run_input.messages
        if isinstance(message, SystemMessage | DeveloperMessage)
    ]
    notes += [f"{context.description}:\n{context.value}" for context in run_input.context or ()]
    try:
        functions = [
            Function(name=tool.name, description=tool.description, parameters=tool.parameters)
            for tool in run_input.tools or ()
        ]
    except ValidationError as error:
        sentence = _("A tool’s definition isn’t valid.")
        raise _invalid(sentence, error) from error
    return Question(
        text=_text(last.content),
        agent=agent,
        history=_history(run_input.messages[:-1]),
        instructions="\n\n".join(notes),
        files=await _files(last.content),
        overrides=client_tools.overrides(functions),
    )


def _history(messages: Sequence[Message]) -> list[HistoryMessage]:
    """Return what was asked and answered; reasoning and activities are for the reader alone."""
    history: list[HistoryMessage] = []
    names: dict[str, str] = {}
    for message in messages:
        if isinstance(message, UserMessage):
            history.append({"role": "user", "content": _text(message.content)})
        elif isinstance(message, AssistantMessage):
            calls = [
                {"type": "function", **call.model_dump(include={"id", "function"})}
                for call in message.tool_calls or ()
            ]
            names |= {call["id"]: call["function"]["name"] for call in calls}
            # Front ends may show each of a turn's calls as a message of its own.
            if calls and history and history[-1]["role"] == "assistant":
                said = history[-1]
                said["tool_calls"] = [*said.get("tool_calls", ()), *calls]
            else:
                said = {"role": "assistant", "content": message.content}
                history.append(said | ({"tool_calls": calls} if calls else {}))
        elif isinstance(message, ToolMessage):
            history.append(
                {
                    "role": "tool",
                    "tool_call_id": message.tool_call_id,
                    "content": _text(message.content),
                    # It may be text from outside; nobody here can tell any more.
                    "untrusted": names.get(message.tool_call_id, "tool"),
                }
            )
    return repair_history(history)


def _text(content: Any) -> str:
    """Return a message's text, whether it is one or has parts."""
    if isinstance(content, str):
        return content
    return "\n".join(part.text for part in content if isinstance(part, TextPart))


async def _files(content: Any) -> list[SentFile]:
    """Return the files of a message. Raises ApiError if one can't be read."""
    if isinstance(content, str):
        return []
    files.check_count(sum(not isinstance(part, TextPart) for part in content))
    sent: list[SentFile] = []
    for part in content:
        if isinstance(part, TextPart):
            continue
        if isinstance(part.source, DataSource):
            url = f"data:{part.source.mime_type};base64,{part.source.value}"
            sent.append(files.decode(url))
        elif isinstance(part.source, UrlSource):
            sent.append(await files.fetch(part.source.value))
        else:
            sentence = _("Send files as data or as a URL.")
            raise ApiError(422, sentence, "unsupported_content")
    return sent
