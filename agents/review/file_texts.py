"""The text of an attached file that a model got in a run, from its recorded requests."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from agents.catalog.file_context import is_outline, part_name
from agents.engine.material.file_parts import named_parts
from agents.engine.state import Message
from agents.models import Run

from .step_details import Excerpt


@dataclass(frozen=True, slots=True)
class FileText:
    """What a model got of a file, in the request of a step."""

    text: str
    step: int

    @property
    def excerpt(self) -> Excerpt:
        return Excerpt.of(self.text)

    @property
    def label(self) -> str:
        if is_outline(self.text):
            return _("Outline and beginning; the rest can be searched")
        return _("Whole text")


def find_file_text(run: Run, file: Mapping[str, Any]) -> FileText | None:
    """Return the text in the first request that has it; None if only the file was sent."""
    name = part_name(file)
    steps = run.steps.exclude(request=None).order_by("number").values_list("number", "request")
    for number, request in steps.iterator(chunk_size=10):
        parts = _texts((request or {}).get("messages") or [])
        found = [text for part in parts for title, text in named_parts(part) if title == name]
        if found:
            return FileText("\n\n".join(dict.fromkeys(found)), number)
    return None


def _texts(messages: list[Message]) -> Iterator[str]:
    """Yield the texts of messages, also of those with images."""
    for message in messages:
        content = message.get("content")
        if isinstance(content, str):
            yield content
        for part in content if isinstance(content, list) else ():
            yield str(part.get("text") or "") if isinstance(part, dict) else ""
