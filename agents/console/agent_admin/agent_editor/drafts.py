"""Saves, discards and restores the one draft of an agent."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.access import recently_deleted
from agents.access.recently_deleted import Kind, Restored
from agents.catalog import agent_spec
from agents.models import Agent, AgentDraft, AgentVersion

from ..agent_form import AgentForm
from . import form_values
from .form_values import Values

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
    if draft is None and agent is None and tab:
        # The draft of a new agent that this page has just created.
        for recent in AgentDraft.objects.filter(agent=None, editor=user)[:RECENT_DRAFTS]:
            if any(
                marked_tab == tab for _revision, _editor, marked_tab in recent.marks.values()
            ):
                draft = recent
                break
    row = _lock(agent, draft)
    values = {**row.values, **changes}
    # Not of this request only: requests add up.
    size = sum(len(name) + sum(map(len, texts)) for name, texts in values.items())
    if size > MAX_VALUE_CHARS or len(values) > MAX_INPUTS:
        raise DraftTooLarge
    clashing = []
    for name in changes:
        revision, _editor, marked_tab = row.marks.get(name, [0, None, ""])
        is_newer = revision > base and (marked_tab != tab or not tab)
        if is_newer and row.values.get(name) != changes[name]:
            clashing.append(name)
    if clashing and not is_forced:
        raise DraftConflict(row, clashing)
    if clashing:
        row.replaced = row.values
    return _write(row, values, user, changes, tab)


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
    restored = row.replaced or {}
    row.replaced = row.values
    return _write(row, restored, user, {*row.values, *restored})


def finish(agent: Agent, draft: AgentDraft | None) -> None:
    """Forget the draft once it is published."""
    AgentDraft.objects.filter(agent=agent).delete()
    if draft is not None:
        AgentDraft.objects.filter(pk=draft.pk).delete()


def unpublished() -> list[AgentDraft]:
    """Return the drafts of agents that aren't published yet, newest first."""
    rows = AgentDraft.objects.filter(agent=None).exclude(values={})
    return list(rows.select_related("editor"))


class DiscardedDrafts(Kind):
    """Drafts that were discarded: those of new agents are restored, all are erased later."""

    name = "agents.AgentDraft"
    label = _("Draft")
    plural = _("Drafts of new agents")
    model = AgentDraft
    is_console = True
    deleted_at = "updated_at"
    deleted_by = "editor"

    def is_open_to(self, user: User) -> bool:
        return user.has_perm("agents.add_agent")

    def deleted(self) -> QuerySet[AgentDraft]:
        return AgentDraft.objects.filter(values={})

    def restorable_by(self, user: User) -> QuerySet[AgentDraft]:
        return self.deleted().filter(agent=None).exclude(replaced=None)

    def title(self, row: AgentDraft) -> str:
        names = (row.replaced or {}).get("name") or [""]
        return names[0] or gettext("Unnamed agent")

    def restore(self, row: AgentDraft, user: User, name: str = "") -> Restored:
        title = self.title(row)
        undo(row, user)
        return Restored(name=title, url=f"{reverse('admin:agents_agent_add')}?draft={row.pk}")


recently_deleted.register(DiscardedDrafts())


def of_version(version: AgentVersion) -> tuple[Values, list[str]]:
    """Return an old version as changes of the published agent, and what no longer exists."""
    agent = version.agent
    preserved = agent_spec.PRESERVED_FIELDS
    spec = {name: value for name, value in version.snapshot.items() if name not in preserved}
    resolved = agent_spec.resolve(spec, agent)
    columns = {f.name: f.value_from_object(resolved.agent) for f in agent_spec.own_fields()}
    many = {
        name: rows
        for name, rows in resolved.many.items()
        # Without any it would be for everyone, or search everything, so the current ones stay.
        if rows or not spec[name] or name not in {"groups", "collections"}
    }
    initial = {**columns, **many, "given": resolved.links}
    form = AgentForm(instance=agent)
    published = form_values.of_form(form)
    values = form_values.of_initial(agent, initial)
    return form_values.differences(form, published, values), resolved.missing


def _lock(agent: Agent | None, draft: AgentDraft | None) -> AgentDraft:
    """Return the row for a change, created if there is none."""
    rows = AgentDraft.objects.select_for_update()
    if agent is not None:
        Agent.objects.select_for_update().get(pk=agent.pk)  # so that only one is created
        return rows.filter(agent=agent).first() or AgentDraft(agent=agent)
    return rows.get(pk=draft.pk) if draft is not None else AgentDraft()


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
