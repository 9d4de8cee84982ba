"""Which media services this installation has, and links that play a recording."""

from django import template
from django.utils.safestring import SafeString

from agents.knowledge.media import services
from agents.knowledge.media.transcript import time_code
from agents.web.presentation.evidence import Observation
from agents.web.presentation.recordings import MARK, Recording, to_seconds

register = template.Library()


@register.simple_tag
def can_transcribe() -> bool:
    """Whether recordings become text here."""
    return services.can_transcribe()


@register.simple_tag
def transcription_host() -> str:
    """Where recordings are sent to be transcribed, if they leave the installation."""
    return services.destination("transcription")


@register.simple_tag
def play_passage(recordings: tuple[Recording, ...], source: Observation) -> SafeString:
    """Return a link that plays a recording where a passage of it begins."""
    document = source.passage.document if source.passage is not None else None
    recording = next(
        (candidate for candidate in recordings if candidate.document == document), None
    )
    mark = MARK.search(source.text)
    if recording is None or mark is None:
        return SafeString()
    seconds = to_seconds(mark)
    return recording.link(seconds, time_code(seconds))
