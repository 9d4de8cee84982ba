"""Request bodies of responses, by the Open Responses specification of 2026-04-24."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from ..client_tools import Function
from .schemas import MAX_INTEGER, Lenient

MAX_ITEMS = 2_000
APPROVAL_RESPONSE = "ashiato:approval_response"


class InputText(Lenient):
    type: Literal["input_text", "output_text", "text", "summary_text", "reasoning_text"]
    text: str


class InputRefusal(Lenient):
    type: Literal["refusal"]
    refusal: str


class InputImage(Lenient):
    type: Literal["input_image"]
    image_url: str | None = None


class InputFile(Lenient):
    type: Literal["input_file"]
    filename: str | None = Field(None, max_length=500)
    file_data: str | None = None
    file_url: str | None = None


InputPart = Annotated[
    InputText | InputRefusal | InputImage | InputFile, Field(discriminator="type")
]


class MessageItem(Lenient):
    type: Literal["message"] = "message"
    role: Literal["user", "assistant", "system", "developer"]
    content: str | list[InputPart]


class FunctionCallItem(Lenient):
    type: Literal["function_call"]
    call_id: str = Field(max_length=200)
    name: str = Field(max_length=200)
    arguments: str = "{}"


class FunctionOutputItem(Lenient):
    type: Literal["function_call_output"]
    call_id: str = Field(max_length=200)
    output: str | list[InputPart]


class CompactionItem(Lenient):
    type: Literal["compaction"]
    encrypted_content: str


class ApprovalResponseItem(Lenient):
    """A decision about an `ashiato:approval_request`; None of its fields is the agent's."""

    type: Literal["ashiato:approval_response"]
    approval_request_id: str = Field(max_length=200)
    approve: bool
    reason: str = Field("", max_length=2_000)
    arguments: dict[str, Any] | None = None
    answer: str | dict[str, Any] | None = None


class OtherItem(Lenient):
    """An item that clients send back as they got it, and that says nothing new."""

    type: str


KINDS = {
    "message",
    "function_call",
    "function_call_output",
    "compaction",
    APPROVAL_RESPONSE,
}


def _kind(value: Any) -> str:
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", "")
    return kind if kind in KINDS else "message" if kind is None else "other"


Item = Annotated[
    Annotated[MessageItem, Tag("message")]
    | Annotated[FunctionCallItem, Tag("function_call")]
    | Annotated[FunctionOutputItem, Tag("function_call_output")]
    | Annotated[CompactionItem, Tag("compaction")]
    | Annotated[ApprovalResponseItem, Tag(APPROVAL_RESPONSE)]
    | Annotated[OtherItem, Tag("other")],
    Discriminator(_kind),
]


class ResponseTool(Function):
    type: str
    strict: bool | None = None


class NamedTool(Lenient):
    type: str = "function"
    name: str = ""


class ToolSelection(Lenient):
    """A tool that has to be called, or those that may be."""

    type: Literal["function", "allowed_tools"]
    name: str | None = None
    tools: list[NamedTool] | None = None
    mode: Literal["none", "auto", "required"] = "auto"


class TextFormat(Lenient):
    type: Literal["text", "json_object", "json_schema"] = "text"
    name: str = "output"
    description: str | None = None
    schema_: dict[str, Any] | None = Field(None, alias="schema")
    strict: bool | None = None


class TextOptions(Lenient):
    format: TextFormat | None = None


class ReasoningOptions(Lenient):
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    summary: Literal["concise", "detailed", "auto"] | None = None


class ResponseRequest(Lenient):
    """The body of `POST /v1/responses`, and of `response.create` on a socket."""

    model: str | None = Field(None, max_length=200)
    input: str | list[Item] | None = None
    instructions: str | None = Field(None, max_length=200_000)
    previous_response_id: str | None = Field(None, max_length=200)
    tools: list[ResponseTool] | None = None
    tool_choice: Literal["none", "auto", "required"] | ToolSelection | None = None
    parallel_tool_calls: bool | None = None
    text: TextOptions | None = None
    reasoning: ReasoningOptions | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, ge=0, le=1)
    max_output_tokens: int | None = Field(None, ge=16, le=MAX_INTEGER)
    max_tool_calls: int | None = Field(None, ge=1)
    truncation: Literal["auto", "disabled"] | None = None
    store: bool | None = None
    stream: bool | None = None
    background: bool | None = None
    metadata: (
        dict[
            Annotated[str, Field(max_length=64)],
            Annotated[str, Field(max_length=512)],
        ]
        | None
    ) = Field(None, max_length=16)
    safety_identifier: str | None = Field(None, max_length=64)
    prompt_cache_key: str | None = Field(None, max_length=64)


class CompactRequest(Lenient):
    """The body of `POST /v1/responses/compact`."""

    model: str = Field(min_length=1, max_length=200)
    input: str | list[Item] | None = None
    previous_response_id: str | None = Field(None, max_length=200)
    instructions: str | None = Field(None, max_length=200_000)
