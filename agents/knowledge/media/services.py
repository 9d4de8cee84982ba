"""The models for sound and images, as chosen in the console or by environment variables."""

from ipaddress import ip_address
from typing import Literal
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext_noop

from agents.db.installation import configured, default_models
from agents.engine.errors import ModelError
from agents.llm import media_api
from agents.llm.media_models import MediaModel

from .. import connected_models

Service = Literal["transcription", "speech", "image", "vision"]

NO_TRANSCRIPTION = gettext_noop(
    "Audio can't be transcribed: no transcription model is configured."
)
NO_IMAGE_MODEL = gettext_noop("Images can't be generated: no image model is configured.")
SPEECH_SECONDS = 120.0
IMAGE_SECONDS = 180.0
VISION_SECONDS = 60.0


def is_configured(service: Service) -> bool:
    """Whether there is a model for a service."""
    return bool(default_models.MODELS[f"{service}_model"].model)


def find(service: Service, model: str = "") -> MediaModel | None:
    """Return the model for a service, by default the chosen one, or None if there is none.

    Raises ModelError if the key of its connection can't be read.
    """
    environment = settings.ENVIRONMENT
    name = model or default_models.MODELS[f"{service}_model"].model
    if not name:
        return None
    seconds = {
        "transcription": environment.transcription_seconds,
        "speech": SPEECH_SECONDS,
        "image": IMAGE_SECONDS,
        "vision": VISION_SECONDS,
    }[service]
    max_retries = configured.MODEL_RETRIES.value
    if connected := default_models.parse(name):
        access = connected_models.find_settings(connected)
        return MediaModel(
            model=access.model,
            url=access.base_url or "",
            key=access.api_key,
            options=access.litellm_options,
            secrets=access.secrets,
            seconds=seconds,
            max_retries=max_retries,
        )
    key = getattr(environment, f"{service}_key")
    return MediaModel(
        model=name if "/" in name else f"openai/{name}",
        url=getattr(environment, f"{service}_url"),
        key=key.get_secret_value() if key else None,
        seconds=seconds,
        max_retries=max_retries,
    )


def can_transcribe() -> bool:
    """Whether recordings become text here, by a configured model or on this machine."""
    return is_configured("transcription") or can_transcribe_here()


def can_transcribe_here() -> bool:
    """Whether recordings needn't leave this machine."""
    return settings.ENVIRONMENT.whisper_model is not None


def destination(service: Service) -> str:
    """Return where a service's data goes, if that is outside: a host or a provider."""
    try:
        media_model = find(service)
    except ModelError:
        return ""  # it can't be called at all
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
