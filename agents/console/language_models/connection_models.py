"""The models of a connection: those that its server offers, ticked if agents can use them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext as _

from agents.catalog.agent_factory import CIRCUITS
from agents.catalog.language_models import model_setups
from agents.llm import parameters
from agents.models import Agent, LanguageModel, ModelConnection
from agents.models.types import AnyUser, LazyText
from agents.web.presentation.formats.formatting import duration, token_size

from . import default_uses, model_facts, model_state
from .listed_models import Listing
from .model_form import full_name
from .model_providers import short_name
from .model_state import AgentUse, ModelState

MAX_TICKED_AT_ONCE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow:
    """A model as the page of its connection displays it."""

    name: str
    full_name: str
    saved: LanguageModel | None
    state: ModelState | None
    seconds: str
    abilities: str
    window: str
    price: str
    uses: list[AgentUse]
    is_gone: bool  # not in the server's list any more
    default_use: str = ""  # what replaces it, if it is the default

    @property
    def is_on(self) -> bool:
        return self.saved is not None and self.saved.enabled


def list_rows(connection: ModelConnection, listing: Listing) -> list[ModelRow]:
    """Return the models in use, then all others that the server offers."""
    saved = {row.model: row for row in _saved_rows(connection)}
    agents = list(Agent.objects.filter(enabled=True))
    among = model_setups.model_rows()
    offered = {_full_name(connection, listed.name): listed.name for listed in listing.models}
    rows = [
        _saved_row(row, agents, among, is_gone=bool(offered) and row.model not in offered)
        for row in saved.values()
    ]
    others = [
        _offered_row(name, model) for model, name in offered.items() if model not in saved
    ]
    return sorted(rows, key=lambda row: not row.is_on) + others


def saved_row(row: LanguageModel) -> ModelRow:
    """Return one saved model, as after a test."""
    agents = list(Agent.objects.filter(enabled=True))
    return _saved_row(row, agents, model_setups.model_rows(), is_gone=False)


def save_choice(
    request: HttpRequest, connection: ModelConnection, ticked: Iterable[str], shown: set[str]
) -> list[LanguageModel]:
    """Turn on the ticked models and turn off the others; return those that are new.

    `shown` are the saved models that were on the page: others were added since.
    """
    model_admin: Any = admin.site.get_model_admin(LanguageModel)
    names = list(dict.fromkeys(ticked))[:MAX_TICKED_AT_ONCE]
    saved = {row.model: row for row in _saved_rows(connection)}
    for row in saved.values():
        is_on = row.model in names or (row.enabled and row.model not in shown)
        if row.enabled != is_on and model_admin.has_change_permission(request):
            model_admin.set_values(request, row, enabled=is_on)
    added = []
    for name in names:
        if name in saved or not model_admin.has_add_permission(request):
            continue
        model = full_name(connection, name)
        if sentence := parameters.name_problem(model):
            raise ValidationError(sentence)
        row = LanguageModel(connection=connection, model=model)
        row.label = model_facts.propose_label(model)
        row.save()
        model_admin.log_addition(request, row, [{"added": {}}])
        CIRCUITS.close(f"model:{row.label}")
        added.append(row)
    return added


def uses_of(connection: ModelConnection) -> list[str]:
    """Return who uses the models of a connection, and for what they are the default."""
    agents = list(Agent.objects.order_by("name"))
    sentences = []
    for row in _saved_rows(connection):
        if names := [use.agent.name for use in model_state.uses_of(row, agents)]:
            sentence = _("%(model)s is used by %(agents)s.")
            sentences.append(sentence % {"model": row.label, "agents": ", ".join(names)})
        if default := default_uses.of_model(row):
            sentences.append(default)
    return [*sentences, *default_uses.of_connection(connection)]


def _saved_rows(connection: ModelConnection) -> list[LanguageModel]:
    rows = list(connection.models.order_by("label"))
    for row in rows:
        row.connection = connection
    return rows


def _full_name(connection: ModelConnection, name: str) -> str:
    try:
        return full_name(connection, name)
    except ValidationError:
        return f"{connection.prefix}/{name}"


def _saved_row(
    row: LanguageModel, agents: list[Agent], among: Any, *, is_gone: bool
) -> ModelRow:
    window = model_facts.window_of(row)
    seconds = row.last_test.get("seconds")
    has_worked = row.last_test.get("works") and seconds is not None
    return ModelRow(
        name=short_name(row),
        full_name=row.model,
        saved=row,
        state=model_state.state_of(row, among=among),
        seconds=duration(seconds * 1000) if has_worked else "",
        abilities=_abilities(model_facts.abilities_of(row)),
        window=token_size(window) if window else "—",
        price=model_facts.price_text(row),
        uses=list(model_state.uses_of(row, agents)),
        is_gone=is_gone,
        default_use=default_uses.of_model(row),
    )


def _offered_row(name: str, model: str) -> ModelRow:
    facts = model_facts.look_up(model)
    row = LanguageModel(model=model)
    return ModelRow(
        name=name,
        full_name=model,
        saved=None,
        state=None,
        seconds="",
        abilities=_abilities(facts.abilities),
        window=token_size(facts.window) if facts.window else "—",
        price=model_facts.price_text(row),
        uses=[],
        is_gone=False,
    )


def _abilities(abilities: dict[str, bool | None]) -> str:
    labels: list[LazyText] = [
        label for name, label in model_facts.ABILITIES.items() if abilities[name]
    ]
    return ", ".join(map(str, labels))


def can_choose(user: AnyUser) -> bool:
    return user.has_perm("agents.add_languagemodel") and user.has_perm(
        "agents.change_languagemodel"
    )
