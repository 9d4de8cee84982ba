"""What is the default for something, and what is used instead without it."""

from collections.abc import Iterator

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.catalog.language_models.discovered_model import discovered_model
from agents.db.installation import default_models
from agents.db.sentences import translate
from agents.knowledge.media import services
from agents.models import LanguageModel, ModelConnection

INSTEAD = {
    "embedding_model": gettext_lazy(
        "Search will use the local model, and all documents are indexed again."
    ),
    "transcription_model": gettext_lazy("Recordings will no longer be transcribed."),
    "speech_model": gettext_lazy("The browser’s voice will read answers aloud."),
    "image_model": gettext_lazy("Agents will no longer make images."),
    "vision_model": gettext_lazy("Of images, only the text will be read."),
}
HERE_INSTEAD = gettext_lazy("Recordings will be transcribed on this server.")


def of_connection(connection: ModelConnection) -> Iterator[str]:
    """Yield a sentence for each default that a connection's deletion would take away."""
    for setting in default_models.MODELS.values():
        connected = default_models.parse(setting.value)
        if connected is None or connected.connection_id != connection.pk:
            continue
        is_here = setting is default_models.TRANSCRIPTION and services.can_transcribe_here()
        params = {"model": connected.model, "purpose": setting.label}
        sentence = _("%(model)s is the default for: %(purpose)s.") % params
        yield f"{sentence} {HERE_INSTEAD if is_here else INSTEAD[setting.key]}"


def of_model(row: LanguageModel) -> str:
    """Return what would replace a model that is the default, or an empty string."""
    if not (row.is_default and row.enabled):
        return ""
    params = {"model": row.label, "other": translate(discovered_model().label)}
    return (
        _(
            "%(model)s is the default model. Without it, agents that have no model of their "
            "own use this one: %(other)s."
        )
        % params
    )
