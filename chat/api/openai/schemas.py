"""Request bodies of chat completions, embeddings and the list of models.

Fields that no agent has a use for are ignored, as clients send many of them.
"""

import asyncio
import json
from typing import Annotated, Any, Literal, TypeVar

from django.http import HttpRequest
from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.db.sanitize import REMOVED_ESCAPES, sanitize_value
from agents.web.api_errors import ApiError

from ..client_tools import Function

MAX_INLINE_BYTES = 100_000  # decoding more takes a thread
MAX_MESSAGES = 2_000
MAX_INTEGER = 2**31 - 1

Body = TypeVar("Body", bound=BaseModel)


class Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore")


class Address(Lenient):
    url: str


class FileContent(Lenient):
    file_data: str | None = None
    filename: str | None = Field(None, max_length=500)


class Audio(Lenient):
    data: str
    format: str = Field("wav", max_length=10)


class TextPart(Lenient):
    type: Literal["text"]
    text: str


class RefusalPart(Lenient):
    type: Literal["refusal"]
    refusal: str


class ImagePart(Lenient):
    type: Literal["image_url"]
    image_url: Address


class FilePart(Lenient):
    type: Literal["file"]
    file: FileContent


class AudioPart(Lenient):
    type: Literal["input_audio"]
    input_audio: Audio


Part = Annotated[
    TextPart | RefusalPart | ImagePart | FilePart | AudioPart, Field(discriminator="type")
]


class CalledFunction(Lenient):
    name: str = Field(max_length=200)
    arguments: str = "{}"


class ToolCall(Lenient):
    id: str = Field(max_length=200)
    function: CalledFunction


class ChatMessage(Lenient):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[Part] | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = Field(None, max_length=200)


class FunctionTool(Lenient):
    type: Literal["function"]
    function: Function


class JsonSchema(Lenient):
    name: str = "output"
    description: str | None = None
    schema_: dict[str, Any] = Field(alias="schema", default_factory=dict)


class ResponseFormat(Lenient):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class StreamOptions(Lenient):
    include_usage: bool = False


class ToolChoiceName(Lenient):
    name: str


class ToolChoice(Lenient):
    type: str = "function"
    function: ToolChoiceName | None = None


class Completion(Lenient):
    """The body of `POST /v1/chat/completions`."""

    model: str = Field(max_length=200)
    messages: list[ChatMessage] = Field(min_length=1, max_length=MAX_MESSAGES)
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    tools: list[FunctionTool] | None = None
    tool_choice: Literal["none", "auto", "required"] | ToolChoice | None = None
    response_format: ResponseFormat | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    reasoning_effort: str | None = Field(None, max_length=20)
    include_reasoning: bool | None = None
    max_tokens: int | None = Field(None, ge=1, le=MAX_INTEGER)
    max_completion_tokens: int | None = Field(None, ge=1, le=MAX_INTEGER)
    n: Literal[1] | None = 1


class Embeddings(Lenient):
    """The body of `POST /v1/embeddings`."""

    model: str = Field("", max_length=200)
    input: str | list[str] = Field(min_length=1)
    encoding_format: Literal["float", "base64"] | None = "float"
    dimensions: int | None = None


async def read(request: HttpRequest, schema: type[Body]) -> Body:
    """Return the request's body. Raises ApiError if it isn't what it should be."""
    content = request.read()
    if len(content) > MAX_INLINE_BYTES:
        return await asyncio.to_thread(parse, content, schema)
    return parse(content, schema)


def parse(content: bytes | str, schema: type[Body]) -> Body:
    """Return this JSON as a body. Raises ApiError if it isn't what it should be."""
    raw = content.encode() if isinstance(content, str) else content
    try:
        if any(escape in raw for escape in REMOVED_ESCAPES):
            return schema.model_validate(sanitize_value(json.loads(raw)))
        return schema.model_validate_json(raw)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ApiError(400, _("The body isn’t valid JSON."), "invalid_json") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        path = ".".join(str(part) for part in first["loc"])
        if not path:
            raise ApiError(400, _("The body isn’t valid JSON."), "invalid_json") from error
        sentence = _("%(field)s: %(problem)s") % {"field": path, "problem": first["msg"]}
        raise ApiError(400, sentence, "invalid_request", param=path) from error
