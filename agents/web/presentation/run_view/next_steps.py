"""What a user can do after a run that ended without a normal answer: one or two buttons.

What failed says in its advice what helps, so its buttons are those that the advice names.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth import get_user_model
from django.urls import reverse
from django.utils.translation import gettext as _

from agents.db.installation.contact import ContactLink, contact_link
from agents.engine.loop import StopReason
from agents.engine.sentences import Sentence

if TYPE_CHECKING:
    from .view import RunView

MAX_STEPS = 2
GUARDRAILS = "guardrailpattern"
LIMITS = "quota"
MODELS = "languagemodel"


class NextStep(StrEnum):
    CONTINUE = "continue"
    TRY_AGAIN = "try_again"
    OTHER_MODEL = "other_model"
    EDIT_QUESTION = "edit_question"
    NEW_CHAT = "new_chat"
    ASK_ADMINISTRATOR = "ask_administrator"


# Words of the English advice, in the order of the buttons.
ADVISED = {
    NextStep.EDIT_QUESTION: ("rephrase", "ask for less", "send less"),
    NextStep.NEW_CHAT: ("new chat",),
    NextStep.TRY_AGAIN: ("try again", "wait for"),
    NextStep.OTHER_MODEL: ("another model", "choose a model"),
}
# Where an administrator finds the cause.
PAGES = {
    StopReason.BLOCKED: GUARDRAILS,
    StopReason.BUDGET: LIMITS,
    StopReason.ERROR: MODELS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolePage:
    """Where an administrator changes what ended the run."""

    label: str
    url: str


def find_steps(view: "RunView") -> list[NextStep]:
    """Return what helps after this ending; nothing for readers, who can't write here."""
    steps = _possible_steps(view)
    if view.lacks_administrator:
        steps.remove(NextStep.ASK_ADMINISTRATOR)
    return steps[:MAX_STEPS]


def lacks_administrator(view: "RunView") -> bool:
    """Whether an administrator would help, but no link leads to one."""
    is_helpful = NextStep.ASK_ADMINISTRATOR in _possible_steps(view)[:MAX_STEPS]
    return is_helpful and view.contact is None and view.console_page is None


def _possible_steps(view: "RunView") -> list[NextStep]:
    if view.place != "chat" or not view.may_decide or view.run.is_live:
        return []
    steps = dict.fromkeys(_helpful_steps(view))
    if not view.is_own:
        steps.pop(NextStep.EDIT_QUESTION, None)  # their messages are their own
    return list(steps)


def _helpful_steps(view: "RunView") -> Iterator[NextStep]:
    is_refused = view.run.stopped_reason == StopReason.BUDGET and bool(view.run.advice)
    if view.can_continue and not is_refused:
        yield NextStep.CONTINUE
    match view.run.stopped_reason:
        case StopReason.BLOCKED:
            yield NextStep.EDIT_QUESTION
            yield NextStep.ASK_ADMINISTRATOR
        case StopReason.ERROR | StopReason.BUDGET if view.run.advice:
            yield from _advised_steps(view.run.advice)
            yield NextStep.ASK_ADMINISTRATOR
            yield NextStep.CONTINUE if is_refused else NextStep.TRY_AGAIN
        case StopReason.CANCELLED:
            if view.can_ask_again:
                yield NextStep.TRY_AGAIN
            yield NextStep.EDIT_QUESTION
        case StopReason.ERROR | StopReason.DUPLICATE | StopReason.TOOL_LIMIT:
            yield NextStep.TRY_AGAIN
            yield NextStep.OTHER_MODEL
        case StopReason.INTERRUPTED | StopReason.DEGRADED:
            yield NextStep.TRY_AGAIN
        case StopReason.MAX_STEPS | StopReason.BUDGET:
            yield NextStep.EDIT_QUESTION


def _advised_steps(advice: str) -> Iterator[NextStep]:
    text = _plain(advice)
    for step, words in ADVISED.items():
        if any(word in text for word in words):
            yield step


def administrator_advice(view: "RunView") -> str:
    """Return what to do if no link leads to an administrator and the advice names none."""
    if not view.lacks_administrator or "administrator" in _plain(view.run.advice):
        return ""
    return _("Ask an administrator for help.")


def _plain(advice: str) -> str:
    return (advice.template if isinstance(advice, Sentence) else advice).lower()


def find_console_page(view: "RunView") -> ConsolePage | None:
    """Return the page of what ended the run, if the viewer is an administrator who opens it."""
    model = PAGES.get(StopReason(view.run.stopped_reason))
    viewer = view.run.user_id if view.viewer is None else view.viewer
    if model is None or viewer is None:
        return None
    person = get_user_model().objects.filter(pk=viewer, is_staff=True).first()
    if person is None or not person.has_perm(f"agents.view_{model}"):
        return None
    labels = {
        GUARDRAILS: _("Open guardrails"),
        LIMITS: _("Open usage limits"),
        MODELS: _("Open models"),
    }
    return ConsolePage(label=labels[model], url=reverse(f"admin:agents_{model}_changelist"))


def write_to_administrator(view: "RunView") -> ContactLink | None:
    """Return the link to an administrator, with what happened; None without a contact."""
    origin = settings.ORIGINS[0] if settings.ORIGINS else ""
    sentences = " ".join(filter(None, (view.sentence, view.advice)))
    return contact_link(
        _("Run %(number)s") % {"number": view.pk},
        f"{sentences}\n\n{view.run.agent_name} · {view.model_label}\n{origin}{view.href}",
    )
