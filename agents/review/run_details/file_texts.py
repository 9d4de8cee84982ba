"""The text of an attached file that a model got in a run, from its recorded requests."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from agents.catalog.attachments.file_context import is_outline, part_name
from agents.engine.material.file_parts import named_parts
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
        texts: list[str] = []
        for message in (request or {}).get("messages") or []:
            content = message.get("content")
            if isinstance(content, str):
                texts.append(content)
            elif isinstance(content, list):  # with images
                texts += [
                    str(item.get("text") or "") for item in content if isinstance(item, dict)
                ]
        sections = [section for text in texts for section in named_parts(text)]
        file_texts = [text for title, text in sections if title == name]
        if file_texts:
            return FileText("\n\n".join(dict.fromkeys(file_texts)), number)
    return None
