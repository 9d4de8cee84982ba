"""Saves, discards and restores the one draft of an agent."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from agents.catalog import agent_spec
from agents.models import Agent, AgentDraft, AgentVersion

from ..agent_form import AgentForm
from . import form_values
from .form_values import Values

# A discarded draft of a new agent can be brought back for this long.
UNDO_PERIOD = timedelta(days=7)
MAX_VALUE_CHARS = 400_000
MAX_INPUTS = 5_000
RECENT_DRAFTS = 20


class DraftConflict(Exception):
    """Raised when another user changed the same inputs since the page was loaded."""

    def __init__(self, draft: AgentDraft, names: list[str]) -> None:
        super().__init__(", ".join(names))
        self.draft = draft
        self.names = names


class DraftTooLarge(Exception):
    """Raised when a draft has more text than an agent can have."""


@dataclass(frozen=True, kw_only=True)
class EditedAgent:
    """A published agent, or none yet, with its draft and the values that result."""

    agent: Agent | None
    draft: AgentDraft | None
    published: Values
    changes: Values  # only what differs from the published agent

    @property
    def values(self) -> Values:
        return self.published | self.changes

    @cached_property
    def form(self) -> Any:
        """The form with the draft's values."""
        return form_values.bind(self.agent, self.values)


def open_draft(agent: Agent | None, draft: AgentDraft | None = None) -> EditedAgent:
    """Return the agent with its draft; what was published meanwhile is no change any more."""
    if agent is not None:
        draft = AgentDraft.objects.select_related("editor").filter(agent=agent).first()
    form = AgentForm(instance=agent)
    published = form_values.of_form(form)
    changes = form_values.differences(form, published, draft.values) if draft else {}
    return EditedAgent(agent=agent, draft=draft, published=published, changes=changes)


@transaction.atomic
def save(
    agent: Agent | None,
    draft: AgentDraft | None,
    user: User,
    changes: Values,
    *,
    base: int = 0,
    tab: str = "",
    is_forced: bool = False,
) -> AgentDraft:
    """Add changed inputs to the draft; `base` is the revision that the user has seen.

    Inputs that were changed elsewhere since then are a conflict, unless `is_forced`. What is
    overwritten can be brought back. `tab` is the page: it may send the last change before it
    hears of the one before, when it is closed.
    """
    changes = form_values.normalize(changes)
    row = _lock(agent, draft or _draft_of_tab(agent, user, tab))
    _check_size({**row.values, **changes})  # not of this request only: requests add up
    newer = [name for name in changes if _is_newer(row, name, base, tab)]
    clashing = [name for name in newer if row.values.get(name) != changes[name]]
    if clashing and not is_forced:
        raise DraftConflict(row, clashing)
    if clashing:
        row.replaced = row.values
    return _write(row, {**row.values, **changes}, user, changes, tab)


@transaction.atomic
def replace(agent: Agent, user: User, values: Values) -> AgentDraft:
    """Make these values the draft, as when an old version is restored; undo brings it back."""
    row = _lock(agent, None)
    row.replaced = row.values
    return _write(row, values, user, {*row.values, *values})


@transaction.atomic
def discard(draft: AgentDraft, user: User) -> AgentDraft:
    """Go back to the published agent; `undo` brings the draft back."""
    row = AgentDraft.objects.select_for_update().get(pk=draft.pk)
    row.replaced = row.values or row.replaced
    return _write(row, {}, user, row.values)


@transaction.atomic
def undo(draft: AgentDraft, user: User) -> AgentDraft:
    """Swap the draft with what it replaced."""
    row = AgentDraft.objects.select_for_update().get(pk=draft.pk)
    before, row.replaced = row.replaced or {}, row.values
    return _write(row, before, user, {*row.values, *before})


def finish(agent: Agent, draft: AgentDraft | None) -> None:
    """Forget the draft once it is published."""
    AgentDraft.objects.filter(agent=agent).delete()
    if draft is not None:
        AgentDraft.objects.filter(pk=draft.pk).delete()


def unpublished() -> list[AgentDraft]:
    """Return the drafts of agents that aren't published yet, newest first."""
    return [row for row in of_new_agents() if row.values]


def of_new_agents() -> list[AgentDraft]:
    """Return drafts without an agent, also discarded ones that can be brought back."""
    rows = AgentDraft.objects.filter(agent=None).select_related("editor")
    return [row for row in rows if row.values or row.replaced]


def delete_old() -> None:
    """Delete drafts that were discarded long ago."""
    rows = AgentDraft.objects.filter(updated_at__lt=timezone.now() - UNDO_PERIOD)
    for row in rows.only("pk", "values"):
        if not row.values:
            row.delete()


def of_version(version: AgentVersion) -> tuple[Values, list[str]]:
    """Return an old version as changes of the published agent, and what no longer exists."""
    agent, keeps = version.agent, agent_spec.PRESERVED_FIELDS
    wanted = {name: value for name, value in version.snapshot.items() if name not in keeps}
    resolved = agent_spec.resolve(wanted, agent)
    columns = {f.name: f.value_from_object(resolved.agent) for f in agent_spec.own_fields()}
    many = {
        name: rows
        for name, rows in resolved.many.items()
        # Without any it would be for everyone, or search everything, so the current ones stay.
        if rows or not wanted[name] or name not in {"groups", "collections"}
    }
    initial = {**columns, **many, "given": resolved.links}
    form = AgentForm(instance=agent)
    published = form_values.of_form(form)
    values = form_values.of_initial(agent, initial)
    return form_values.differences(form, published, values), resolved.missing


def _check_size(changes: Values) -> None:
    size = sum(len(text) for texts in changes.values() for text in texts)
    size += sum(map(len, changes))
    if size > MAX_VALUE_CHARS or len(changes) > MAX_INPUTS:
        raise DraftTooLarge


def _lock(agent: Agent | None, draft: AgentDraft | None) -> AgentDraft:
    """Return the row for a change, created if there is none."""
    rows = AgentDraft.objects.select_for_update()
    if agent is not None:
        Agent.objects.select_for_update().get(pk=agent.pk)  # so that only one is created
        return rows.filter(agent=agent).first() or AgentDraft(agent=agent)
    return rows.get(pk=draft.pk) if draft is not None else AgentDraft()


def _is_newer(row: AgentDraft, name: str, base: int, tab: str) -> bool:
    revision, _editor, marked_tab = row.marks.get(name, [0, None, ""])
    return bool(revision > base and (marked_tab != tab or not tab))


def _draft_of_tab(agent: Agent | None, user: User, tab: str) -> AgentDraft | None:
    """Return the draft of a new agent that this page has just created."""
    if agent is not None or not tab:
        return None
    rows = AgentDraft.objects.filter(agent=None, editor=user)[:RECENT_DRAFTS]
    marked = (
        row
        for row in rows
        if any(marked_tab == tab for _revision, _editor, marked_tab in row.marks.values())
    )
    return next(marked, None)


def _write(
    row: AgentDraft, values: Values, user: User, touched: Iterable[str], tab: str = ""
) -> AgentDraft:
    base = form_values.of_agent(row.agent) if row.agent_id else {}
    row.values = {name: texts for name, texts in values.items() if base.get(name) != texts}
    row.revision += 1
    row.marks |= {name: [row.revision, user.pk, tab] for name in touched}
    newest = sorted(row.marks, key=lambda name: -row.marks[name][0])[:MAX_INPUTS]
    row.marks = {name: row.marks[name] for name in newest}
    row.editor = user
    row.save()
    return row
