"""The line at the composer about a limit that is nearly used up."""

from collections.abc import Callable
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from agents.access.requests import UserRequest
from agents.db.installation.contact import ContactLink, contact_link
from agents.metering import budgets
from agents.metering.budgets import BudgetState
from agents.metering.budgets.refusals import scope_phrase
from agents.metering.budgets.windows import window_start
from agents.models import Agent, Quota
from agents.web.presentation.formats.dates import datetime_text, time_text

WARNING = 80  # percent
FULL = 100
Window = Quota.Window


@dataclass(frozen=True, slots=True)
class LimitNote:
    """The limit of which the most is used."""

    state: BudgetState

    @property
    def contact(self) -> ContactLink | None:
        """The link with which the user asks an administrator for a higher limit."""
        return contact_link(_("Request for a higher limit"), self.sentence)

    @property
    def percent(self) -> int:
        return int(100 * self.state.share)

    @property
    def is_used_up(self) -> bool:
        return self.percent >= FULL

    @property
    def sentence(self) -> str:
        limit = self.state.limit
        values = {
            "share": f"{min(self.percent, FULL)}%",
            "limit": budgets.format_amount(limit.measure, limit.amount or 0),
            "per": budgets.format_limit(limit.measure, limit.amount or 0, limit.window),
            "scope": scope_phrase(limit.kind, limit.name),
            "when": self.resets,
        }
        if limit.kind != "user":
            return SHARED_SENTENCES[self.is_used_up]() % values
        return SENTENCES[limit.window, self.is_used_up]() % values

    @property
    def resets(self) -> str:
        is_day = self.state.limit.window == Window.DAY
        return (time_text if is_day else datetime_text)(self.state.resets_at)

    @property
    def notice(self) -> str:
        """What this note is about, so that a browser displays it once as a message."""
        limit = self.state.limit
        start = window_start(limit.window)
        level = FULL if self.is_used_up else WARNING
        return f"{limit.scope} {limit.measure} {limit.window} {start:%Y-%m-%d} {level}"


SENTENCES: dict[tuple[str, bool], Callable[[], str]] = {
    (Window.DAY, False): lambda: _("%(share)s of today's %(limit)s used · resets at %(when)s"),
    (Window.DAY, True): lambda: _("Today's %(limit)s is used up · resets at %(when)s"),
    (Window.MONTH, False): lambda: _(
        "%(share)s of this month's %(limit)s used · resets on %(when)s"
    ),
    (Window.MONTH, True): lambda: _("This month's %(limit)s is used up · resets on %(when)s"),
}
SHARED_SENTENCES: dict[bool, Callable[[], str]] = {
    False: lambda: _("%(share)s of %(per)s for %(scope)s used · resets %(when)s"),
    True: lambda: _("%(per)s for %(scope)s is used up · resets %(when)s"),
}


def note_context(user: User, agent: str) -> dict[str, object]:
    """Return what the composer needs; without limits it has no line and asks for none."""
    if not budgets.is_any_set():
        return {"has_limits": False}
    return {"has_limits": True, "limit_note": find_note(user, agent), "limit_agent": agent}


def find_note(user: User, agent: str) -> LimitNote | None:
    """Return the note about the fullest limit, if it is nearly used up.

    Limits per minute are over before they are read.
    """
    agent_pks = Agent.objects.open_to(user.pk).filter(name=agent).values_list("pk", flat=True)
    states = budgets.read(user.pk, agent=agent_pks.first() if agent else None)
    notes = [LimitNote(state) for state in states if state.limit.window != Window.MINUTE]
    near = [note for note in notes if note.percent >= WARNING]
    return max(near, key=lambda note: note.state.share, default=None)


@require_GET
def limit_note(request: UserRequest) -> HttpResponse:
    """Render the line again, after a run has used more."""
    context = note_context(request.user, request.GET.get("agent", "").replace("\0", ""))
    return render(request, "chat/messages/_limit_note.html", context)
