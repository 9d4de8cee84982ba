"""The models for sound and images, as configured by environment variables."""

from ipaddress import ip_address
from typing import Literal
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext_noop

from agents.db.installation import configured
from agents.engine.errors import ModelError
from agents.llm import media_api
from agents.llm.media_models import MediaModel

Service = Literal["transcription", "speech", "image", "vision"]

NO_TRANSCRIPTION = gettext_noop(
    "Audio can't be transcribed: no transcription model is configured."
)
NO_IMAGE_MODEL = gettext_noop("Images can't be generated: no image model is configured.")
SPEECH_SECONDS = 120.0
IMAGE_SECONDS = 180.0
VISION_SECONDS = 60.0


def find(service: Service) -> MediaModel | None:
    """Return the model for a service, or None if there is none."""
    environment = settings.ENVIRONMENT
    model = getattr(environment, f"{service}_model")
    if not model:
        return None
    key = getattr(environment, f"{service}_key")
    seconds = {
        "transcription": environment.transcription_seconds,
        "speech": SPEECH_SECONDS,
        "image": IMAGE_SECONDS,
        "vision": VISION_SECONDS,
    }
    return MediaModel(
        model=model if "/" in model else f"openai/{model}",
        url=getattr(environment, f"{service}_url"),
        key=key.get_secret_value() if key else None,
        seconds=seconds[service],
        max_retries=configured.MODEL_RETRIES.value,
    )


def can_transcribe() -> bool:
    """Whether recordings become text here, by a configured model or on this machine."""
    return bool(settings.ENVIRONMENT.transcription_model or settings.ENVIRONMENT.whisper_model)


def destination(service: Service) -> str:
    """Return where a service's data goes, if that is outside: a host or a provider."""
    media_model = find(service)
    if media_model is None:
        return ""
    try:
        address = media_model.url or media_api.address(media_model)
    except ModelError:
        address = ""  # without a key it isn't called at all
    if not address:
        return (
            media_model.model.partition("/")[0] if media_api.needs_litellm(media_model) else ""
        )
    host = urlsplit(address).hostname or ""
    try:
        is_outside = ip_address(host).is_global
    except ValueError:  # a name, which tells it as far as one can know
        is_outside = "." in host and not host.endswith((".local", ".internal", ".localhost"))
    return host if is_outside else ""
