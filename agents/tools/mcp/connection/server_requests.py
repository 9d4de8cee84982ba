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
from agents.engine.sentences import Sentence as _

MAX_MESSAGE_CHARS = 4_000
MAX_SCHEMA_FIELDS = 50
MAX_SAMPLING_CHARS = 2_000_000


class Answerer(Protocol):
    """Answers a server's requests, for the call that they belong to."""

    name: str

    async def ask(self, question: Question) -> QuestionAnswer: ...

    async def sample(self, request: SamplingRequest) -> SamplingReply: ...


class InvalidServerRequest(ToolError):
    message = _("The server sent an invalid request.")


def callbacks(answerer: Answerer) -> dict[str, Any]:
    """Return the session's callbacks, which also declare what a server may ask for."""

    async def list_roots(context: ClientRequestContext) -> wire.ListRootsResult:
        # No folders: an administrator allows them, and none belong to a chat.
        return wire.ListRootsResult(roots=[])

    async def elicit(
        context: ClientRequestContext, params: wire.ElicitRequestParams
    ) -> wire.ElicitResult | wire.ErrorData:
        try:
            answer = await answerer.ask(_to_question(answerer.name, params))
        except QuestionUnavailable:
            return wire.ElicitResult(action="decline")
        except ToolError as error:
            return wire.ErrorData(code=wire.INVALID_REQUEST, message=str(error))
        is_form = isinstance(params, wire.ElicitRequestFormParams)
        content = dict(answer.content) if answer.action == "accept" and is_form else None
        try:
            return wire.ElicitResult(action=answer.action, content=content)
        except ValidationError:
            sentence = _("The answer contains values that the protocol doesn't allow.")
            return wire.ErrorData(code=wire.INTERNAL_ERROR, message=sentence)

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
        "list_roots_callback": list_roots,
        "elicitation_callback": elicit,
        "sampling_callback": sample,
    }


def url_questions(name: str, error: wire.ErrorData) -> list[Question]:
    """Return the pages that the user must open before a call, if that is the error."""
    if error.code != wire.URL_ELICITATION_REQUIRED:
        return []
    try:
        required = wire.ElicitationRequiredErrorData.model_validate(error.data)
        return [_to_question(name, params) for params in required.elicitations]
    except (ValidationError, InvalidServerRequest):
        return []


def _to_question(name: str, params: wire.ElicitRequestParams) -> Question:
    message = params.message[:MAX_MESSAGE_CHARS]
    if isinstance(params, wire.ElicitRequestURLParams):
        try:
            address = urlsplit(params.url)
            is_web_url = address.scheme in {"http", "https"} and bool(address.hostname)
        except ValueError:
            is_web_url = False
        if not is_web_url:
            raise InvalidServerRequest(_("The page to open must have an http or https URL."))
        return Question(source=name, message=message, url=params.url)
    schema = dict(params.requested_schema)
    fields = schema.get("properties")
    if isinstance(fields, Mapping) and len(fields) > MAX_SCHEMA_FIELDS:
        raise InvalidServerRequest(
            _("The form has more than %(most)s fields.", most=MAX_SCHEMA_FIELDS)
        )
    return Question(source=name, message=message, schema=schema)


def _to_sampling_request(name: str, params: wire.CreateMessageRequestParams) -> SamplingRequest:
    if params.tools:
        raise InvalidServerRequest(_("Sampling with tools isn't supported."))
    messages = []
    size = len(params.system_prompt or "")
    for message in params.messages:
        blocks: list[dict[str, Any]] = []
        for item in message.content_as_list:
            match item:
                case wire.TextContent():
                    blocks.append({"type": "text", "text": item.text})
                case wire.ImageContent():
                    url = f"data:{item.mime_type};base64,{item.data}"
                    blocks.append({"type": "image_url", "image_url": {"url": url}})
                case _:
                    raise InvalidServerRequest(
                        _("Sampling with %(kind)s content isn't supported.", kind=item.type)
                    )
        texts = [block["text"] for block in blocks if block["type"] == "text"]
        # Plain text, or parts if there are images.
        content = "\n".join(texts) if len(texts) == len(blocks) else blocks
        messages.append({"role": message.role, "content": content})
        size += len(str(content))
    if size > MAX_SAMPLING_CHARS:
        raise InvalidServerRequest(
            _(
                "The messages are longer than %(most)s characters.",
                most=f"{MAX_SAMPLING_CHARS:,}",
            )
        )
    return SamplingRequest(
        source=name,
        messages=messages,
        system=params.system_prompt or "",
        max_tokens=params.max_tokens,
        temperature=params.temperature,
        stop=tuple(params.stop_sequences or ()),
    )
