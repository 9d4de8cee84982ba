"""The state of a draft for the editor's page: what is saved, changed, wrong, and by whom."""

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.text import get_text_list
from django.utils.translation import gettext as _

from agents.access.names import display_name
from agents.models import AgentDraft

from ..draft_runs import form_errors
from . import draft_changes, form_values
from .drafts import DraftConflict, EditedAgent
from .layout import tabs_of

# A user who saved this recently is said to be editing.
EDITING_PERIOD = timedelta(minutes=5)


def describe(edited: EditedAgent, user: User) -> dict[str, Any]:
    """Return the state as JSON for the page."""
    draft = edited.draft
    return {
        "draft": draft.pk if draft else None,
        "revision": draft.revision if draft else 0,
        "savedAt": draft.updated_at.isoformat() if draft else None,
        "isNew": edited.agent is None,
        "version": edited.agent.version if edited.agent else 0,
        "changed": draft_changes.previous_texts(edited) if edited.agent else {},
        "count": len(draft_changes.changed_fields(edited)),
        "tabs": tabs_of(edited.changes) if edited.agent else [],
        "tools": draft_changes.changed_tools(edited) if edited.agent else [],
        "canUndo": bool(draft and draft.replaced),
        "other": other_editor(draft, user),
        "name": edited.values.get("name", [""])[0] if edited.values.get("name") else "",
    }


def errors(edited: EditedAgent) -> dict[str, list[str]]:
    """Return what is wrong, by input."""
    edited.form.is_valid()
    return form_errors(edited.form)


def labelled_errors(edited: EditedAgent) -> list[tuple[str, str, str]]:
    """Return what prevents publishing: input, label and sentence."""
    fields = form_values.fields_by_input(edited.form)
    return [
        (name, str(fields[name].label or name) if name in fields else "", sentence)
        for name, sentences in errors(edited).items()
        for sentence in sentences
    ]


def other_editor(draft: AgentDraft | None, user: User) -> str:
    """Return who else saved this draft a moment ago."""
    if draft is None:
        return ""
    since = timezone.now() - EDITING_PERIOD
    if draft.updated_at < since:
        return ""
    editors = {editor for _revision, editor, _tab in draft.marks.values()} - {user.pk, None}
    others = User.objects.filter(pk__in=editors).order_by("pk")
    return str(get_text_list([display_name(other) for other in others], _("and")))


def conflict(error: DraftConflict, edited: EditedAgent) -> dict[str, Any]:
    """Return who changed which inputs, and what they are now."""
    fields = form_values.fields_by_input(edited.form)
    labels = [str(fields[name].label or name) for name in error.names if name in fields]
    editor = display_name(error.draft.editor) if error.draft.editor else _("Another user")
    sentence = _("%(who)s changed this draft meanwhile: %(fields)s. Your version isn't saved.")
    return {
        "conflict": sentence % {"who": editor, "fields": ", ".join(dict.fromkeys(labels))},
        "revision": error.draft.revision,
        "theirs": {name: error.draft.values.get(name, []) for name in error.names},
    }
