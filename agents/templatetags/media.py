"""Which media services this installation has."""

from django import template
from django.conf import settings

from agents.media import services

register = template.Library()


@register.simple_tag
def can_transcribe() -> bool:
    """Whether recordings become text here."""
    return services.can_transcribe()


@register.simple_tag
def has_voice() -> bool:
    """Whether a configured voice reads answers aloud."""
    return bool(settings.ENVIRONMENT.speech_model)
