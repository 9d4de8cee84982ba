"""Rows as a reviewer may see them: the same rows, with personal data masked in every text."""

from collections.abc import Hashable, Iterable, MutableMapping
from copy import copy
from functools import lru_cache
from typing import Any, TypeVar

from django.db import models

from agents.engine.events import Type
from agents.engine.privacy.masking import Growing, mask
from agents.engine.privacy.pseudonyms import ALIAS
from agents.models import Agent, AgentStep, Approval, Membership, Run, RunEvent

SEE_ALL = "agents.see_personal_data"
UNMASKED = "unmasked"
ANSWER = 0  # steps are counted from 1
MOST_LABELLED = 200
HIDDEN = "…"
WORDS = {Type.DELTA, Type.THOUGHT_DELTA}
COLUMNS: dict[type[models.Model], tuple[str, ...]] = {
    Run: (
        "query",
        "parameters",
        "history",
        "answer",
        "output",
        "detail",
        "advice",
        "overrides",
    ),
    AgentStep: ("thought", "action", "action_input", "observation", "request", "notes"),
    Approval: ("arguments", "new_arguments", "reason"),
    RunEvent: ("data",),
}
Row = TypeVar("Row", bound=models.Model)
Session = MutableMapping[str, Any]


def hides(run: Run, user: Any, session: Session) -> bool:
    """Whether this person is shown the run masked: unless it is theirs, or they said why.

    Whoever shares a conversation shows it as it is.
    """
    if run.user_id is not None and is_open(run, user):
        return False
    return run.pk not in session.get(UNMASKED, ()) or not user.has_perm(SEE_ALL)


def is_own(run: Run, user: Any) -> bool:
    """Whether its words are this person's; those asked at a terminal are nobody's."""
    whose = asker(run)
    return whose is not None and whose == user.pk


def is_open(run: Run, user: Any) -> bool:
    """Whether its words are this person's, or were said where they were let in."""
    if is_own(run, user):
        return True
    first = _first(run)
    return first is not None and first.topic in Membership.objects.topics_of(user)


def asker(run: Run) -> int | None:
    """Whose words it is about: a run again belongs to whoever wanted it, and its words do not.

    Where its origin is gone nobody can say, and so it is nobody's.
    """
    first = _first(run)
    return first and first.user_id


def _first(run: Run) -> Run | None:
    while run.origin_step is not None:
        if run.origin is None:
            return None
        run = run.origin
    return run


def with_origins(runs: Iterable[Run]) -> list[Run]:
    """These runs, with all that `asker` will want to know of them read in one go."""
    found = list(runs)
    again = [run for run in found if run.origin_id is not None]
    while again:
        origins = Run.objects.only("user", "topic", "origin", "origin_step").in_bulk(
            {run.origin_id for run in again}
        )
        for run in again:
            run.origin = origins.get(run.origin_id)
        again = [run for run in origins.values() if run.origin_id is not None]
    return found


def unmask(run: Run, session: Session) -> None:
    """Show this run as it is, for as long as this session of the browser lasts."""
    session[UNMASKED] = sorted({*session.get(UNMASKED, ()), run.pk})


def mask_again(run: Run, session: Session) -> None:
    session[UNMASKED] = [pk for pk in session.get(UNMASKED, ()) if pk != run.pk]


def columns(model: type[models.Model]) -> tuple[str, ...]:
    """The columns of these rows that are masked for others."""
    return COLUMNS.get(model) or getattr(model, "personal", ())


def masked(row: Row) -> Row:
    """A copy to show; rows of others say themselves what in them may be `personal`.

    What was not read of the row is empty: it would be read as it is.
    """
    shown = copy(row)
    for name in columns(type(row)):
        empty = row._meta.get_field(name).get_default()
        setattr(shown, name, _column(row, name, row.__dict__.get(name, empty)))
    shown.__dict__.pop("found", None)
    return shown


def _column(row: models.Model, name: str, value: Any) -> Any:
    if name == "observation" and row.__dict__.get("found_size", 0) > len(value):
        return Growing().feed(value)  # it is cut, maybe in the middle of something personal
    if isinstance(row, RunEvent) and row.type in WORDS:
        return {**value, "content": HIDDEN}  # a word alone does not tell what it is a part of
    return masked_value(value)


def kept(agent: Agent, value: Any) -> Any:
    """The value as it may be kept of what this agent is asked."""
    return masked_value(value) if agent.personal_data == Agent.PersonalData.UNKEPT else value


def masked_text(text: str) -> str:
    return mask(text).text


_named = lru_cache(maxsize=4096)(masked_text)  # the same few names, again and again


def masked_value(value: Any, label: str = "") -> Any:
    """Every text and number in it; what a field is called says what is in it."""
    if isinstance(value, str):
        return _leaf(value, label)
    if isinstance(value, dict):
        return _masked_fields(value)
    if isinstance(value, list):
        return [masked_value(item, label) for item in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    text = _leaf(str(value), label)
    return value if text == str(value) else text


def _masked_fields(value: dict[str, Any]) -> dict[str, Any]:
    """Two names that are masked alike stay two."""
    shown: dict[str, Any] = {}
    for key, item in value.items():
        name = _named(key)
        name = f"{name} {len(shown)}" if name in shown else name
        # A field that is called by an alias holds what the model was not shown.
        shown[name] = HIDDEN if ALIAS.fullmatch(key) else masked_value(item, key)
    return shown


def _leaf(text: str, label: str) -> str:
    called = f"{label}: "
    if label and len(text) <= MOST_LABELLED:
        labelled = masked_text(f"{called}{text}")
        if labelled.startswith(called):
            return labelled.removeprefix(called)
    return masked_text(text)


class Veil:
    """What a page shows of words that are still being said: masked, and a little behind."""

    def __init__(self) -> None:
        self._growing: dict[Hashable, Growing] = {}

    def begin(self, step: Hashable, text: str) -> str:
        """What can be shown of a text that is known up to here."""
        self._growing[step] = Growing()
        return self._growing[step].feed(text)

    def add(self, step: Hashable, text: str) -> str:
        """What more can be shown, now that more was said."""
        return self._growing.setdefault(step, Growing()).feed(text)

    def event(self, row: RunEvent) -> RunEvent:
        """The next event; what its words leave out is in the one that ends their step."""
        if row.type not in WORDS:
            return masked(row)
        shown, words = copy(row), self.add((row.type, row.data["step"]), row.data["content"])
        shown.data = {**row.data, "content": words}
        return shown
