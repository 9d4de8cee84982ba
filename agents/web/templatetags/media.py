"""Which media services this installation has."""

from django import template

from agents.knowledge.media import services

register = template.Library()


@register.simple_tag
def can_transcribe() -> bool:
    """Whether recordings become text here."""
    return services.can_transcribe()


@register.simple_tag
def transcription_host() -> str:
    """Where recordings are sent to be transcribed, if they leave the installation."""
    return services.destination("transcription")
