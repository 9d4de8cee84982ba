"""Versions of workflows, which never change."""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from agents.access import audit
from agents.engine.plans import PlanDefinition, read_definition
from agents.models import Workflow, WorkflowVersion


class WorkflowNotSaved(Exception):
    """Raised when a workflow can't be saved; the user sees the reason."""


class VersionConflict(WorkflowNotSaved):
    """Raised when someone else saved another version meanwhile."""

    def __init__(self, newest: WorkflowVersion) -> None:
        author = newest.author.get_username() if newest.author else "—"
        super().__init__(
            _(
                "Not saved. Version %(number)d was saved by %(who)s while you were "
                "editing. Review the changes below and save again."
            )
            % {"number": newest.number, "who": author}
        )
        self.newest = newest


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """A line of a diff between two versions."""

    sign: str
    text: str


def save(
    text: str, user: User | None, *, workflow: Workflow | None = None, base: int = 0
) -> Workflow:
    """Save a new version based on another one; unchanged text creates none."""
    text = clean_text(text)
    definition = read_definition(text)
    if definition.problems:
        raise WorkflowNotSaved(_("Not saved. Fix the errors below."))
    try:
        with transaction.atomic():
            return _save_version(text, definition, user, workflow, base)
    except IntegrityError:
        raise WorkflowNotSaved(
            _("A workflow named %(name)s already exists.") % {"name": definition.name}
        ) from None


def restore(workflow: Workflow, number: int, user: User) -> Workflow:
    """Save an old version's text as the newest."""
    old = workflow.versions.get(number=number)
    newest = workflow.newest
    return save(old.text, user, workflow=workflow, base=newest.number if newest else 0)


def diff_lines(old: str, new: str) -> Iterator[DiffLine]:
    """Yield the changed lines with some context."""
    lines = unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=3)
    for line in lines:
        if not line.startswith(("---", "+++")):
            yield DiffLine(sign=line[:1], text=line if line.startswith("@@") else line[1:])


def clean_text(text: str) -> str:
    """Return the text as every database accepts it, with normalized line ends."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    return text.encode(errors="replace").decode()


def _save_version(
    text: str,
    definition: PlanDefinition,
    user: User | None,
    workflow: Workflow | None,
    base: int,
) -> Workflow:
    if workflow is None:
        workflow = Workflow.objects.create(**_definition_fields(definition))
    else:
        Workflow.objects.select_for_update().get(pk=workflow.pk)  # serializes saves
        newest = workflow.newest
        if newest is not None and newest.text == text:
            return workflow
        if newest is not None and newest.number != base:
            raise VersionConflict(newest)
        Workflow.objects.filter(pk=workflow.pk).update(**_definition_fields(definition))
        workflow.refresh_from_db()
    workflow.versions.create(number=base + 1, text=text, author=user)
    details = {"name": workflow.name, "version": base + 1}
    audit.record(user, audit.WORKFLOW_SAVED, workflow, **details)
    return workflow


def _definition_fields(definition: PlanDefinition) -> dict[str, str]:
    return {"name": definition.name, "description": definition.description}
