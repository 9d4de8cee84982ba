"""The models for everything but chat: embeddings, sound and images; chosen in the console.

A model is one of a connection, or has a name of its own such as `local`. They are settings, so
that they are read from memory, and the audit log and configuration files have them; their page
is *Models → Defaults*. The environment can name a model with a URL and a key of its own.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.functional import lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.db.row_cache import RowCache
from agents.models import ConfigurationChange, ModelConnection
from agents.models.types import LazyText

from .setting import Kind, Section, Setting, TextSetting

LOCAL = "local"
OFF = "off"
# As long as the columns with the names of embedding models.
MAX_NAME_CHARS = 200
CONNECTED_MODEL = re.compile(r"(\d{1,18}):(.+)")
LANGUAGE_CODE = re.compile(r"[a-z]{2,3}")

CONNECTIONS: RowCache[dict[int, ModelConnection]] = RowCache(
    ModelConnection,
    lambda: ModelConnection.objects.defer("listing").in_bulk(),
    dict,
    stamps=ConfigurationChange,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectedModel:
    """A model of a connection. Settings and indexes name it like `3:openai/whisper-1`."""

    connection_id: int
    model: str  # with the prefix of its provider

    @property
    def connection(self) -> ModelConnection | None:
        return CONNECTIONS.get().get(self.connection_id)

    @property
    def label(self) -> str:
        connection = self.connection
        if connection is None:
            return _("%(model)s (deleted connection)") % {"model": self.model}
        name = self.model.removeprefix(f"{connection.prefix}/")
        return f"{name} ({connection.name})"


def parse(name: str) -> ConnectedModel | None:
    """Return the model of a connection that has this name; others are of no connection."""
    match = CONNECTED_MODEL.fullmatch(name)
    return ConnectedModel(connection_id=int(match[1]), model=match[2]) if match else None


def label_of(name: str) -> str:
    """Return a model's name as administrators read it."""
    connected = parse(name)
    return connected.label if connected else name


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSetting(Setting[str]):
    """The model for one purpose; `names` are the choices besides models of connections."""

    section: Section = Section.DEFAULT_MODELS
    kind: Kind = Kind.TEXT
    default: str = ""
    names: Mapping[str, LazyText] = field(hash=False)

    @property
    def model(self) -> str:
        """The model in force: the default if the connection of the chosen one was deleted."""
        name = self.value
        connected = parse(name)
        return self.default if connected and connected.connection is None else name

    def clean(self, value: Any) -> str:
        if isinstance(value, str) and value in self.names:
            return value
        connected = parse(value) if isinstance(value, str) else None
        pk = connected.connection_id if connected else 0
        if not ModelConnection.objects.filter(pk=pk).exists():
            raise ValidationError(_("Choose a model of a connection."))
        if len(value) > MAX_NAME_CHARS:
            raise ValidationError(
                _("Use %(most)d characters or fewer.") % {"most": MAX_NAME_CHARS}
            )
        return str(value)

    def display(self, value: Any) -> str:
        return str(self.names[value]) if value in self.names else label_of(value)

    def to_file(self, value: str) -> str | dict[str, str]:
        """Return a value as configuration files have it: by its connection's name."""
        connected = parse(value)
        if connected is None:
            return value
        row = ModelConnection.objects.filter(pk=connected.connection_id).only("name").first()
        if row is None:
            return value
        return {"connection": row.name, "model": connected.model}

    def from_file(self, value: Any) -> Any:
        """Return a value of a file as it is saved; raise ValidationError."""
        if not isinstance(value, dict):
            return value
        if value.keys() != {"connection", "model"} or not isinstance(value["model"], str):
            raise ValidationError(_("Must have a connection and a model."))
        row = ModelConnection.objects.filter(name=str(value["connection"])).first()
        if row is None:
            raise ValidationError(
                _("There is no connection “%(name)s”.") % {"name": value["connection"]}
            )
        return f"{row.pk}:{value['model']}"


def _own_transcription() -> str:
    return _("Local model") if settings.ENVIRONMENT.whisper_model else _("Not set")


def _parse_language(text: str) -> str:
    if not LANGUAGE_CODE.fullmatch(text):
        raise ValidationError(_("Enter a language code such as ja or en."))
    return text


EMBEDDING = ModelSetting(
    key="embedding_model",
    label=gettext_lazy("Embedding"),
    help=gettext_lazy("Search by meaning in documents, memories and tools."),
    default=LOCAL,
    names={LOCAL: gettext_lazy("Local model"), OFF: gettext_lazy("Words only")},
    environment="embedding_model",
)
TRANSCRIPTION = ModelSetting(
    key="transcription_model",
    label=gettext_lazy("Transcription"),
    help=gettext_lazy("Turns recordings and the sound of videos into text."),
    names={"": lazy(_own_transcription, str)()},
    environment="transcription_model",
)
TRANSCRIPTION_LANGUAGE = TextSetting(
    key="transcription_language",
    section=Section.DEFAULT_MODELS,
    label=gettext_lazy("Language of recordings"),
    help=gettext_lazy("E.g. ja. Leave empty to detect it."),
    maximum=3,
    parse=_parse_language,
    environment="transcription_language",
)
SPEECH = ModelSetting(
    key="speech_model",
    label=gettext_lazy("Speech"),
    help=gettext_lazy("Reads answers aloud."),
    names={"": gettext_lazy("The browser’s voice")},
    environment="speech_model",
)
SPEECH_VOICE = TextSetting(
    key="speech_voice",
    section=Section.DEFAULT_MODELS,
    label=gettext_lazy("Voice"),
    help=gettext_lazy("As the provider names it, e.g. alloy."),
    default="alloy",
    maximum=100,
    environment="speech_voice",
)
IMAGE = ModelSetting(
    key="image_model",
    label=gettext_lazy("Image"),
    help=gettext_lazy("Makes images with the tool generate_image."),
    names={"": gettext_lazy("Not set")},
    environment="image_model",
)
VISION = ModelSetting(
    key="vision_model",
    label=gettext_lazy("Vision"),
    help=gettext_lazy("Describes images for models that can’t see, and frames of videos."),
    names={"": gettext_lazy("Not set")},
    environment="vision_model",
)
MODELS: dict[str, ModelSetting] = {
    setting.key: setting for setting in (EMBEDDING, TRANSCRIPTION, SPEECH, IMAGE, VISION)
}
SETTINGS: dict[str, ModelSetting | TextSetting] = {
    **MODELS,
    TRANSCRIPTION_LANGUAGE.key: TRANSCRIPTION_LANGUAGE,
    SPEECH_VOICE.key: SPEECH_VOICE,
}
