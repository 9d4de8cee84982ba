"""What an MCP server asks of us during a call: the user's answers, and the agent's model.

Only `client` imports this, because it needs the protocol's types.
"""

from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import urlsplit

import mcp_types as wire
from mcp.client.session import ClientRequestContext
from pydantic import ValidationError

from agents.engine.call_context import (
    Question,
    QuestionAnswer,
    QuestionUnavailable,
    SamplingReply,
    SamplingRequest,
)
from agents.engine.errors import ToolError

MAX_MESSAGE_CHARS = 4_000
MAX_SCHEMA_FIELDS = 50
MAX_SAMPLING_CHARS = 2_000_000


class Answerer(Protocol):
    """Answers a server's requests, for the call that they belong to."""

    name: str

    async def ask(self, question: Question) -> QuestionAnswer: ...

    async def sample(self, request: SamplingRequest) -> SamplingReply: ...


class InvalidServerRequest(ToolError):
    """The server asks for something that can't be answered."""


def callbacks(answerer: Answerer) -> dict[str, Any]:
    """Return the session's callbacks, which also declare what a server may ask for."""

    async def elicit(
        context: ClientRequestContext, params: wire.ElicitRequestParams
    ) -> wire.ElicitResult | wire.ErrorData:
        try:
            answer = await answerer.ask(_to_question(answerer.name, params))
        except QuestionUnavailable:
            return wire.ElicitResult(action="decline")
        except ToolError as error:
            return wire.ErrorData(code=wire.INVALID_REQUEST, message=str(error))
        return _to_elicit_result(params, answer)

    async def sample(
        context: ClientRequestContext, params: wire.CreateMessageRequestParams
    ) -> wire.CreateMessageResult | wire.ErrorData:
        try:
            reply = await answerer.sample(_to_sampling_request(answerer.name, params))
        except ToolError as error:
            return wire.ErrorData(code=wire.INVALID_REQUEST, message=str(error))
        return wire.CreateMessageResult(
            role="assistant",
            content=wire.TextContent(text=reply.text),
            model=reply.model,
            stop_reason=reply.stop_reason,
        )

    return {
        "list_roots_callback": _list_roots,
        "elicitation_callback": elicit,
        "sampling_callback": sample,
    }


async def _list_roots(context: ClientRequestContext) -> wire.ListRootsResult:
    """Return no folders: an administrator allows them, and none belong to a chat."""
    return wire.ListRootsResult(roots=[])


def url_questions(name: str, error: wire.ErrorData) -> list[Question]:
    """Return the pages that the user must open before a call, if that is the error."""
    if error.code != wire.URL_ELICITATION_REQUIRED:
        return []
    try:
        wanted = wire.ElicitationRequiredErrorData.model_validate(error.data)
        return [_to_question(name, params) for params in wanted.elicitations]
    except (ValidationError, InvalidServerRequest):
        return []


def _to_question(name: str, params: wire.ElicitRequestParams) -> Question:
    message = params.message[:MAX_MESSAGE_CHARS]
    if isinstance(params, wire.ElicitRequestURLParams):
        if not _is_web_url(params.url):
            raise InvalidServerRequest("The page to open must have an http or https URL.")
        return Question(source=name, message=message, url=params.url)
    schema = dict(params.requested_schema)
    fields = schema.get("properties")
    if isinstance(fields, Mapping) and len(fields) > MAX_SCHEMA_FIELDS:
        raise InvalidServerRequest(f"The form has more than {MAX_SCHEMA_FIELDS} fields.")
    return Question(source=name, message=message, schema=schema)


def _is_web_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        return False


def _to_elicit_result(
    params: wire.ElicitRequestParams, answer: QuestionAnswer
) -> wire.ElicitResult | wire.ErrorData:
    has_content = answer.action == "accept" and isinstance(params, wire.ElicitRequestFormParams)
    try:
        return wire.ElicitResult(
            action=answer.action, content=dict(answer.content) if has_content else None
        )
    except ValidationError:
        sentence = "The answer contains values that the protocol doesn't allow."
        return wire.ErrorData(code=wire.INTERNAL_ERROR, message=sentence)


def _to_sampling_request(name: str, params: wire.CreateMessageRequestParams) -> SamplingRequest:
    if params.tools:
        raise InvalidServerRequest("Sampling with tools isn't supported.")
    messages = [_to_message(message) for message in params.messages]
    sizes = [len(params.system_prompt or ""), *(len(str(m["content"])) for m in messages)]
    if sum(sizes) > MAX_SAMPLING_CHARS:
        raise InvalidServerRequest(
            f"The messages are longer than {MAX_SAMPLING_CHARS:,} characters."
        )
    return SamplingRequest(
        source=name,
        messages=messages,
        system=params.system_prompt or "",
        max_tokens=params.max_tokens,
        temperature=params.temperature,
        stop=tuple(params.stop_sequences or ()),
    )


def _to_message(message: wire.SamplingMessage) -> Mapping[str, Any]:
    """Return a chat message: plain text, or parts if there are images."""
    parts = [_to_part(block) for block in message.content_as_list]
    texts = [part["text"] for part in parts if part["type"] == "text"]
    content = "\n".join(texts) if len(texts) == len(parts) else parts
    return {"role": message.role, "content": content}


def _to_part(block: wire.SamplingMessageContentBlock) -> dict[str, Any]:
    match block:
        case wire.TextContent():
            return {"type": "text", "text": block.text}
        case wire.ImageContent():
            url = f"data:{block.mime_type};base64,{block.data}"
            return {"type": "image_url", "image_url": {"url": url}}
    raise InvalidServerRequest(f"Sampling with {block.type} content isn't supported.")
