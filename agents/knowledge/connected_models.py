"""How a model of a connection is reached: with the URL, key and account of the connection."""

from agents.db.installation.default_models import ConnectedModel
from agents.engine.errors import ModelError
from agents.engine.sentences import Sentence as _
from agents.llm import parameters
from agents.llm.parameters import DESTINATION_OPTIONS, ModelSettings
from agents.llm.providers import find_provider
from agents.models.secret import UnreadableSecret

CHOOSE_AGAIN = _("Choose the model again under Models → Defaults.")
ENTER_KEY = _("Enter the key of its connection again.")


def find_settings(connected: ConnectedModel) -> ModelSettings:
    """Return where requests go and with which key; raise ModelError if that isn't known."""
    connection = connected.connection
    model = connected.model
    if connection is None:
        raise ModelError(
            _("The connection of the model %(model)s was deleted.", model=model),
            advice=CHOOSE_AGAIN,
        )
    try:
        key = connection.api_key.reveal() or None
        secrets = connection.secrets.reveal()
    except UnreadableSecret as error:
        raise ModelError(
            _("The API key of the model %(model)s can't be decrypted.", model=model),
            advice=ENTER_KEY,
        ) from error
    prefixes = (parameters.provider_prefix(model), connection.prefix)
    if (
        (key or secrets)
        and not connection.base_url
        and len({*map(parameters.provider_label, prefixes)}) > 1
    ):
        # Its provider was changed, or a configuration file named another one.
        raise ModelError(
            _("The model %(model)s is of another provider than its connection.", model=model),
            advice=CHOOSE_AGAIN,
        )
    provider = find_provider(model)
    # A saved key isn't sent to an address of the environment.
    own_url = provider.base_url if provider and provider.speaks_openai and key else None
    options = connection.options.items()
    settings = ModelSettings(
        model=model,
        base_url=connection.base_url or own_url,
        api_key=key,
        api_version=connection.api_version,
        region=connection.region,
        # The others are for chat.
        options={n: v for n, v in options if n in DESTINATION_OPTIONS and v not in ("", None)},
        secrets={n: v for n, v in secrets.items() if v not in ("", None)},
    )
    parameters.check(settings)
    return settings
