"""The models that can be chosen for embeddings, sound and images, by connection."""

import re
from collections.abc import Sequence

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from agents.db.installation import default_models
from agents.db.installation.default_models import ModelSetting
from agents.llm import model_info
from agents.models import ModelConnection

from . import listed_models, model_facts
from .model_form import full_name

Choice = tuple[str, str]
Group = tuple[str, list[Choice]]

# What the price list calls the models for a purpose.
MODES = {
    "embedding_model": frozenset({"embedding"}),
    "transcription_model": frozenset({"audio_transcription"}),
    "speech_model": frozenset({"audio_speech"}),
    "image_model": frozenset({"image_generation"}),
    "vision_model": model_info.CHAT_MODES,
}
# How models are named that it doesn't have. None is known to see by its name.
NAMES = {
    "embedding_model": r"^(?!.*rerank).*(embed|minilm|(^|[-/])(bge|gte|e5)-)",
    "transcription_model": r"whisper|transcri|(^|[-/_])(asr|stt)([-_]|$)",
    "speech_model": r"(^|[-/_])tts([-_]|$)|kokoro",
    "image_model": r"dall-e|gpt-image|imagen|flux|stable-diffusion|sdxl",
    "vision_model": r"(?!)",
}


def choices(
    setting: ModelSetting, connections: Sequence[ModelConnection]
) -> list[Choice | Group]:
    """Return the setting's own choices, then each connection's models.

    The last one of a connection is for a model that is typed. The chosen model is always there.
    """
    current = setting.model
    own = [(name, str(label)) for name, label in setting.names.items()]
    groups = [_group(setting, connection, current) for connection in connections]
    if len(groups) > 1:  # a closed select displays the model alone
        groups = [
            (name, [(value, f"{label} ({name})") for value, label in models])
            for name, models in groups
        ]
    known = {value for value, _label in own}.union(*(dict(models) for _name, models in groups))
    if current not in known:
        own.append((current, default_models.label_of(current)))
    return [*own, *groups]


def _group(setting: ModelSetting, connection: ModelConnection, current: str) -> Group:
    models = [f"{connection.pk}:{model}" for model in _offered(connection, setting.key)]
    chosen = default_models.parse(current)
    if chosen and chosen.connection_id == connection.pk and current not in models:
        models.append(current)
    start = f"{connection.pk}:{connection.prefix}/"
    labelled = [(name, name.removeprefix(start)) for name in models]
    return connection.name, [*labelled, (typed_value(connection), _("Another model…"))]


def typed_value(connection: ModelConnection) -> str:
    """Return the choice that means: a model of this connection whose name is typed."""
    return f"{connection.pk}:"


def _offered(connection: ModelConnection, key: str) -> list[str]:
    """Return a connection's models for a purpose, with their prefix."""
    listing = listed_models.listing_of(connection)
    names = [model.name for model in listing.models]
    if listing.others is not None:
        names += listing.others
    elif not connection.base_url:  # its server can't be asked, or wasn't asked for these
        names += model_info.provider_models(connection.prefix, MODES[key])
    seeing = {
        row.model
        for row in connection.models.all()
        if key == "vision_model" and model_facts.abilities_of(row)[model_facts.IMAGES]
    }
    offered = {model for name in names if _fits(model := _with_prefix(connection, name), key)}
    return sorted(offered | seeing)


def _fits(model: str, key: str) -> bool:
    mode = model_info.mode(model)
    if not mode:
        return re.search(NAMES[key], model.partition("/")[2], re.IGNORECASE) is not None
    return mode in MODES[key] and (key != "vision_model" or model_info.sees_images(model))


def _with_prefix(connection: ModelConnection, name: str) -> str:
    try:
        return full_name(connection, name)
    except ValidationError:
        return f"{connection.prefix}/{name}"
