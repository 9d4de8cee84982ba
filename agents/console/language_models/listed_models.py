"""The models that a connection's server offers: asked for, and saved with the connection."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from asgiref.sync import async_to_sync
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.access import audit
from agents.catalog.language_models import model_setups
from agents.db.sentences import translate
from agents.engine.errors import AgentError
from agents.llm import model_info
from agents.llm.discovery.model_list import ListedModel, ModelsNotListed, list_models
from agents.models import ModelConnection
from agents.models.secret import UnreadableSecret
from agents.models.types import AnyUser
from agents.web.presentation.formats.formatting import token_size

from . import model_facts
from .model_tester import KEY_ADVICE, connection_details


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What a server offered when it was asked; without an answer, why.

    `others` don't chat; None if they weren't asked for yet.
    """

    models: tuple[ListedModel, ...] = ()
    others: tuple[str, ...] | None = None
    at: datetime | None = None
    error: str = ""
    is_key_accepted: bool = False
    is_price_list: bool = False

    @property
    def is_good(self) -> bool:
        return not self.error

    @property
    def sentence(self) -> str:
        """How many models there are, and what is known about the key."""
        if self.error:
            return self.error
        count = len(self.models)
        if self.is_price_list:
            text = ngettext(
                "This server can’t be asked. %(count)d model is in the price list.",
                "This server can’t be asked. %(count)d models are in the price list.",
                count,
            )
            return text % {"count": count}
        if not count:
            return _("Connected. The server lists no models. Add them by name.")
        text = ngettext(
            "Connected. %(count)d model found.", "Connected. %(count)d models found.", count
        )
        return text % {"count": count}


def refresh(user: AnyUser, connection: ModelConnection) -> Listing:
    """Ask the server of a saved connection for its models, and save the answer.

    Where it can't be asked, the price list has the provider's models.
    """
    # Recorded first, because the key is sent to the URL.
    details = {**connection_details(connection), "check": "models"}
    audit.record(user, audit.MODEL_TESTED, connection, **details)
    found: dict[str, Any] = {"at": timezone.now().isoformat()}
    try:
        settings = model_setups.connection_settings(connection)
        listed = async_to_sync(list_models)(settings)
        found["models"] = [[model.name, model.note] for model in listed.models]
        found["others"] = list(listed.others)
        found["key"] = listed.key
    except ModelsNotListed as error:
        prefix = connection.prefix
        # A server of one's own isn't in the price list.
        names = [] if connection.base_url else model_info.provider_models(prefix)
        found |= {"models": [[name, ""] for name in names], "is_price_list": bool(names)}
        if not names:
            found["error"] = f"{error} {error.advice}"
    except AgentError as error:
        # The models of the last time are still worth showing.
        kept = {"models", "others"} & connection.listing.keys()
        found |= {"models": [], **{name: connection.listing[name] for name in kept}}
        found["error"] = f"{error} {error.advice}"
        found["is_key_wrong"] = error.advice in KEY_ADVICE
    except UnreadableSecret as error:
        found["error"] = str(error)
    ModelConnection.objects.filter(pk=connection.pk).update(listing=found)
    connection.listing = found
    return listing_of(connection)


def listing_of(connection: ModelConnection) -> Listing:
    """Return what the server offered when it was last asked."""
    saved = connection.listing
    return Listing(
        models=tuple(ListedModel(name=n, note=note) for n, note in saved.get("models", ())),
        others=tuple(saved["others"]) if "others" in saved else None,
        at=parse_datetime(saved.get("at", "")) if saved else None,
        error=translate(saved.get("error", "")),
        is_key_accepted=saved.get("key") == "accepted",
        is_price_list=saved.get("is_price_list", False),
    )


def options_json(connection: ModelConnection, listing: Listing) -> dict[str, Any]:
    """Return the models with their windows and prices for a combobox."""
    options = []
    for listed in listing.models:
        facts = model_facts.look_up(f"{connection.prefix}/{listed.name}")
        notes = [listed.note, token_size(facts.window) if facts.window else ""]
        if facts.input_price is not None and facts.output_price is not None:
            notes.append(f"${facts.input_price:g} / ${facts.output_price:g}")
        options.append({"name": listed.name, "note": " · ".join(filter(None, notes))})
    return {"models": options, "sentence": listing.sentence, "isGood": listing.is_good}
