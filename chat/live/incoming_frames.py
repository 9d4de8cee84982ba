"""Frames that the page of a chat sends, with their limits.

Limits that a form has, too, are checked where a message is saved.
"""

import json
from typing import Annotated, Any, Literal

from django.utils.translation import gettext_lazy as _
from pydantic import BaseModel, Field, PlainValidator, TypeAdapter

from agents.db.sanitize import parse_id

MAX_FRAME_CHARS = 1_048_576


class BadFrame(Exception):
    """Raised when the browser sends an invalid frame."""


def _parse_row_id(value: object) -> int | None:
    if not isinstance(value, str | int):
        raise ValueError("A row's id is a text or a number.")
    return parse_id(str(value))


def _text_or_empty(value: object) -> str:
    return value if isinstance(value, str) else ""


RowId = Annotated[int | None, PlainValidator(_parse_row_id)]  # None: no row can have it
OptionalText = Annotated[str, PlainValidator(_text_or_empty)]


class MessageFrame(BaseModel):
    type: Literal["message"]
    text: str
    client_id: str
    agent: OptionalText = ""
    files: OptionalText = ""  # ids of uploads, such as "12,13"
    # Options of the chat; those that the page doesn't send stay unset.
    model: OptionalText = ""
    effort: OptionalText = ""
    temperature: Any = None


class EditFrame(BaseModel):
    type: Literal["edit"]
    message: RowId
    text: str
    client_id: str
    agent: OptionalText = ""


class CorrectFrame(BaseModel):
    type: Literal["correct"]
    message: RowId
    text: str


class RegenerateFrame(BaseModel):
    type: Literal["regenerate"]
    message: RowId
    client_id: str
    agent: OptionalText = ""
    model: OptionalText = ""


class DeleteFrame(BaseModel):
    type: Literal["delete_message"]
    message: RowId
    scope: Literal["pair", "below"]


class MessageIdFrame(BaseModel):
    type: Literal["send_now", "withdraw", "show_branch"]
    message: RowId


class StopFrame(BaseModel):
    type: Literal["stop"]
    run: RowId


Frame = (
    MessageFrame
    | EditFrame
    | CorrectFrame
    | RegenerateFrame
    | DeleteFrame
    | MessageIdFrame
    | StopFrame
)
FRAMES: TypeAdapter[Frame] = TypeAdapter(Annotated[Frame, Field(discriminator="type")])


def parse_frame(text: str | None, frames: TypeAdapter[Any] = FRAMES) -> Any:
    """Return a frame, one of those that the page can send; raise BadFrame."""
    if text is None:
        raise BadFrame(_("This page accepts text only."))
    if len(text) > MAX_FRAME_CHARS:
        raise BadFrame(_("This message is too long to send."))
    try:
        # Pydantic's own parser rejects half a surrogate pair, and with it the whole text.
        return frames.validate_python(json.loads(text))
    except (ValueError, RecursionError):
        raise BadFrame(
            _("The page sent an invalid request. Reload it and try again.")
        ) from None
