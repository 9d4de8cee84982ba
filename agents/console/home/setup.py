"""The checklist of a new installation: each step is done when the rows say so."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Count, IntegerField, Q, QuerySet, Subquery, Value
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.catalog.language_models import model_setups
from agents.db.sentences import translate
from agents.models import Agent, AgentVersion, Document, LanguageModel


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupStep:
    """A step; without a permission it is a fact without a link."""

    title: str
    state: str
    is_done: bool
    action: str
    url: str
    permission: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupChecklist:
    steps: list[SetupStep]
    is_hidden: bool

    @property
    def done(self) -> int:
        return sum(step.is_done for step in self.steps)

    @property
    def is_complete(self) -> bool:
        return self.done == len(self.steps)

    @property
    def next(self) -> SetupStep | None:
        return next((step for step in self.steps if not step.is_done), None)


def build_checklist(user: User) -> SetupChecklist | None:
    """Return what is done and what is next; None for a user who can do none of it."""
    is_hidden = not getattr(getattr(user, "profile", None), "has_setup_guide", True)
    counts = _counts(user)
    steps = [
        _model_step(counts),
        _agent_step(counts),
        _document_step(counts),
        _people_step(counts),
    ]
    steps = [step for step in steps if user.has_perm(step.permission)]
    return SetupChecklist(steps=steps, is_hidden=is_hidden) if steps else None


def _counts(user: User) -> dict[str, Any]:
    """Return all counts in one query."""
    documents = Document.objects.filter(collection__topic="", collection__deleted_at=None)
    rows_by_name: dict[str, QuerySet[Any]] = {
        "models": LanguageModel.objects.filter(enabled=True),
        "agents": Agent.objects.filter(enabled=True),
        "authored": AgentVersion.objects.filter(author__isnull=False),
        "documents": documents,
        "indexed": documents.exclude(indexed_at=None),
        # Those of the samples have neither.
        "added": documents.filter(Q(owner__isnull=False) | ~Q(url="")),
        "people": User.objects.filter(is_active=True),
    }
    columns = []
    for rows in rows_by_name.values():
        # Grouped by a constant; the subquery is null instead of 0.
        grouped = rows.order_by().annotate(constant=Value(1)).values("constant")
        number = grouped.annotate(number=Count("pk")).values("number")
        columns.append(Subquery(number, IntegerField()))
    [counts] = User.objects.filter(pk=user.pk).values_list(*columns)
    return {name: count or 0 for name, count in zip(rows_by_name, counts, strict=True)}


def _model_step(counts: dict[str, Any]) -> SetupStep:
    default = model_setups.default_model()
    count = counts["models"]
    is_done = bool(count) or not default.is_demo
    sentence = ngettext("%(count)d is set up.", "%(count)d are set up.", count)
    state = sentence % {"count": count} if count else f"{translate(default.label)}."
    if not is_done:
        state = _("Only the demo model answers so far.")
    list_url = reverse("admin:agents_languagemodel_changelist")
    return SetupStep(
        title=_("Connect a model"),
        state=state,
        is_done=is_done,
        action=_("View models") if is_done else _("Connect a model"),
        url=list_url if is_done else reverse("admin:agents_modelconnection_add"),
        permission="agents.add_modelconnection",
    )


def _agent_step(counts: dict[str, Any]) -> SetupStep:
    count = counts["agents"]
    is_done = bool(counts["authored"])
    live = ngettext("%(count)d is live.", "%(count)d are live.", count) % {"count": count}
    return SetupStep(
        title=_("Create an agent"),
        state=live if is_done else _("Start from a template, or change a sample agent."),
        is_done=is_done,
        action=_("View agents") if is_done else _("Create an agent"),
        url=reverse("admin:agents_agent_changelist" if is_done else "admin:agents_agent_add"),
        permission="agents.add_agent",
    )


def _document_step(counts: dict[str, Any]) -> SetupStep:
    count = counts["documents"]
    is_done = bool(counts["added"])
    sentence = ngettext(
        "%(count)d file, %(indexed)d indexed.", "%(count)d files, %(indexed)d indexed.", count
    )
    state = sentence % {"count": count, "indexed": counts["indexed"]}
    return SetupStep(
        title=_("Add documents"),
        state=state if is_done else _("Agents search them and cite the passages."),
        is_done=is_done,
        action=_("View documents") if is_done else _("Add documents"),
        url=reverse("library:list"),
        permission="agents.view_document",
    )


def _people_step(counts: dict[str, Any]) -> SetupStep:
    count = counts["people"]
    is_done = count > 1
    sentence = ngettext("%(count)d can sign in.", "%(count)d can sign in.", count)
    list_url = reverse("admin:auth_user_changelist")
    return SetupStep(
        title=_("Invite users"),
        state=sentence % {"count": count} if is_done else _("Only you have access so far."),
        is_done=is_done,
        action=_("View users") if is_done else _("Invite users"),
        url=list_url if is_done else reverse("admin:people_invitation_new"),
        permission="people.add_invitation",
    )
