"""What the image tools need of this installation: its models, its OCR, and a chat's images."""

import asyncio
import logging
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from agents.db import database
from agents.engine import call_context
from agents.engine.attachments import MAX_ATTACHMENT_BYTES, image_size
from agents.engine.errors import AgentError, ModelError, ToolError
from agents.engine.tool import IMAGE_TYPES
from agents.file_types import detect_type
from agents.knowledge.files import FileRefused, images, store
from agents.knowledge.parsing import UnreadableDocument, parse
from agents.metering.budgets import current_payer
from agents.metering.budgets.metered import metered_media
from agents.models import Agent, Run, RunAttachment
from agents.tools.images import NewImage, Shape

from . import services

logger = logging.getLogger(__name__)

# By how the model's name begins; others get the first.
SIZES: tuple[tuple[str, dict[Shape, str]], ...] = (
    ("gpt-image", {"square": "1024x1024", "landscape": "1536x1024", "portrait": "1024x1536"}),
    ("dall-e-2", {"square": "1024x1024", "landscape": "1024x1024", "portrait": "1024x1024"}),
    ("dall-e-3", {"square": "1024x1024", "landscape": "1792x1024", "portrait": "1024x1792"}),
    ("", {"square": "1024x1024", "landscape": "1280x768", "portrait": "768x1280"}),
)
CONFIGURE = "Ask an administrator to choose an image model."
NOT_AN_IMAGE = "The image model returned something that is not an image."
MAX_TEXT_CHARS = 8_000
OCR_SECONDS = 30.0
NO_TEXT = "No text was found in it."
NO_VISION = "No vision model is configured, so only its text could be read."
HIDES_DATA = "This agent sends no files to models, so only its text was read."
DEFAULT_QUESTION = "Describe this image in detail, with all text, numbers and labels in it."


async def generate(prompt: str, shape: Shape) -> NewImage:
    """Return an image by the configured model; raise AgentError with advice."""
    service = services.find("image")
    if service is None:
        raise ModelError(services.NO_IMAGE_MODEL, advice=CONFIGURE)
    # Not repeated by itself: a request that was lost may have been paid for.
    generated = await metered_media.generate_image(
        replace(service, max_retries=0), prompt, size=size_for(service.model, shape)
    )
    call_context.current().report_usage(generated.usage.to_dict())
    data, mime_type = await asyncio.to_thread(_scale_down, generated.data)
    facts = [service.model]
    if size := image_size(generated.data):
        facts.append(f"{size[0]} × {size[1]} pixels")
    cost = generated.usage.cost
    facts.append(f"${cost:.3f}" if cost is not None else "cost unknown")
    return NewImage(
        data=data, mime_type=mime_type, note=", ".join(facts), prompt=generated.prompt
    )


def size_for(model: str, shape: Shape) -> str:
    name = model.rpartition("/")[2]
    return next(sizes for start, sizes in SIZES if name.startswith(start))[shape]


def _scale_down(data: bytes) -> tuple[bytes, str]:
    """Return the image, made smaller if a run couldn't save it."""
    mime_type = detect_type(data)
    if mime_type not in IMAGE_TYPES:
        raise ToolError(NOT_AN_IMAGE, advice="Try again, or choose another image model.")
    if len(data) <= MAX_ATTACHMENT_BYTES:
        return data, mime_type
    try:
        with (
            store.stage(data, name="image") as staged,
            images.scale(staged, "image", owner=current_payer().user) as scaled,
        ):
            return scaled.staged.path.read_bytes(), scaled.staged.mime_type
    except FileRefused as error:
        raise ToolError(str(error)) from error


@dataclass(frozen=True, slots=True)
class _ChatImage:
    """An image of the chat whose run is calling."""

    data: bytes
    mime_type: str
    text: str
    is_private: bool


async def describe(name: str, question: str) -> str:
    """Return the text in an image of the calling run's chat, and a description."""
    image = await database.run(_find_image, call_context.current().chat_id, name)
    text = image.text or await asyncio.to_thread(_recognize, image)
    recognized = f"Text in the image:\n{text[:MAX_TEXT_CHARS]}" if text else NO_TEXT
    if image.is_private:
        return f"{recognized}\n\n{HIDES_DATA}"
    try:
        service = services.find("vision")
        if service is None:
            return f"{recognized}\n\n{NO_VISION}"
        description = await metered_media.describe_image(
            service, image.data, image.mime_type, question=question or DEFAULT_QUESTION
        )
    except AgentError as error:  # the text alone is worth returning
        return f"{recognized}\n\nIt couldn't be described: {error}"
    call_context.current().report_usage(description.usage.to_dict())
    return f"{recognized}\n\nDescription by {service.model}:\n{description.text}"


def _find_image(topic: str, name: str) -> _ChatImage:
    """Return the newest image with this name; only the calling run's chat is searched."""
    rows = RunAttachment.objects.filter(run__topic=topic, mime_type__in=IMAGE_TYPES)
    rows = (rows if topic else rows.none()).select_related("file")
    row = rows.filter(name__iexact=name).order_by("-pk").first()
    if row is None:
        names = list(dict.fromkeys(rows.order_by("-pk").values_list("name", flat=True)[:20]))
        advice = f"Images here: {', '.join(names)}." if names else "There are no images."
        raise ToolError(f"This chat has no image named {name[:100]!r}.", advice=advice)
    try:
        with row.open() as content:
            data = bytes(content.read())
    except OSError as error:
        raise ToolError("The image's file can't be read.") from error
    run = Run.objects.filter(topic=topic).select_related("agent").order_by("-pk").first()
    agent = run.agent if run is not None else None
    is_private = agent is not None and agent.personal_data == Agent.PersonalData.HIDDEN
    return _ChatImage(data, row.mime_type, row.text, is_private)


def _recognize(image: _ChatImage) -> str:
    with tempfile.TemporaryDirectory(prefix="image-") as folder:
        path = Path(folder, "image")
        path.write_bytes(image.data)
        with suppress(UnreadableDocument):
            parsed = parse(path, "image", mime_type=image.mime_type, deadline=OCR_SECONDS)
            return "\n\n".join(page.text for page in parsed.parts).strip()
    return ""
