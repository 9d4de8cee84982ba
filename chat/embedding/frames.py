"""What the frame of an embedded chat can send over its socket."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field, TypeAdapter

from chat.live.incoming_frames import MessageFrame, RegenerateFrame, RowId, StopFrame


class RateFrame(BaseModel):
    type: Literal["rate"]
    run: RowId
    rating: Literal["good", "bad", "none"]


EmbedFrame = MessageFrame | RegenerateFrame | StopFrame | RateFrame
EMBED_FRAMES: TypeAdapter[EmbedFrame] = TypeAdapter(
    Annotated[EmbedFrame, Field(discriminator="type")]
)
