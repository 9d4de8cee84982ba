"""Why a limit refuses something, as data and in words."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from agents.engine.errors import QuotaExceeded
from agents.engine.spending import Refusal, RefusalReason
from agents.installation.setting import MICROS
from agents.models import Quota

from .limits import MILLISECONDS, Limit

Measure, Window = Quota.Measure, Quota.Window


def build_refusal(limit: Limit, reason: RefusalReason, **details: Any) -> Refusal:
    """Return a limit's refusal."""
    return Refusal(
        reason=reason,
        scope=limit.kind,
        name=limit.name if limit.kind != "user" else "",
        measure=limit.measure,
        window=limit.window,
        limit=limit.amount or 0,
        **details,
    )


def most_lasting(refused: Sequence[Refusal]) -> Refusal:
    """Return the refusal that waiting helps last, so that a retry isn't refused by another."""
    order = ("busy", "spent", "too_large", "no_price")
    ends = {
        id(refusal): refusal.resets_at.timestamp() if refusal.resets_at else 0.0
        for refusal in refused
    }
    return max(refused, key=lambda refusal: (order.index(refusal.reason), ends[id(refusal)]))


def error(refusal: Refusal) -> QuotaExceeded:
    """Return the error with a sentence and advice in the active language."""
    return QuotaExceeded(sentence(refusal), advice=advice(refusal), refusal=refusal)


def sentence(refusal: Refusal) -> str:
    """Return which limit refused, with what was used."""
    values = {
        "most": format_limit(refusal.measure, refusal.limit, refusal.window),
        "used": short_amount(refusal.measure, refusal.spent),
        "held": short_amount(refusal.measure, refusal.held),
        "needed": format_amount(refusal.measure, refusal.needed),
        "model": refusal.model or _("This model"),
        "scope": scope_phrase(refusal.scope, refusal.name),
    }
    return SENTENCES[refusal.reason](refusal.scope) % values


def _spent_sentence(scope: str) -> str:
    if scope == "user":
        return _("You've reached your limit of %(most)s (used: %(used)s).")
    return _("The limit of %(most)s for %(scope)s is used up (used: %(used)s).")


SENTENCES: dict[str, Callable[[str], str]] = {
    "spent": _spent_sentence,
    "busy": lambda _scope: _(
        "Calls in progress have reserved the rest of the limit of %(most)s for %(scope)s "
        "(used: %(used)s, reserved: %(held)s)."
    ),
    "too_large": lambda _scope: _(
        "This request needs at least %(needed)s, more than the whole limit of %(most)s for "
        "%(scope)s."
    ),
    "no_price": lambda _scope: _(
        "%(model)s has no known price, so it can't be used under the limit of %(most)s for "
        "%(scope)s."
    ),
}


def advice(refusal: Refusal) -> str:
    """Return what helps: waiting, a smaller request, or an administrator."""
    match refusal.reason:
        case "busy":
            return _("Try again when they have finished.")
        case "too_large":
            return _(
                "Waiting doesn't help. Start a new chat or send less, or ask an administrator "
                "to raise the limit."
            )
        case "no_price":
            return _(
                "Ask an administrator to enter its price under Models (0 if it's free), or "
                "choose another model."
            )
    return reset_sentence(refusal.resets_at) if refusal.resets_at else ""


def reset_sentence(at: datetime) -> str:
    """Return when a limit starts over, in the reader's time zone and any language."""
    local = timezone.localtime(at)
    when = f"{local:%Y-%m-%d %H:%M} ({local:%Z})"
    return _("The limit resets on %(when)s.") % {"when": when}


def scope_phrase(scope: str, name: str) -> str:
    """Return a scope as part of a sentence."""
    match scope:
        case "user":
            return _("you")
        case "group":
            return _("the group %(name)s") % {"name": name}
        case "agent":
            return _("the agent %(name)s") % {"name": name}
        case "model":
            return _("the model %(name)s") % {"name": name}
        case "tool":
            return _("the tool %(name)s") % {"name": name}
    return _("all users together")


def short_amount(measure: str, amount: int) -> str:
    """Return an amount without a unit, except for money and time."""
    if measure == Measure.COST:
        return format_money(amount)
    if measure == Measure.SECONDS:
        return f"{amount / MILLISECONDS:,.0f} s"
    return f"{amount:,}"


def format_money(amount: int) -> str:
    """Return millionths of a dollar as dollars, with more digits if it is very little."""
    dollars = amount / MICROS
    return f"${dollars:,.2f}" if amount % 10_000 == 0 or dollars >= 1 else f"${dollars:,.4f}"


def format_amount(measure: str, amount: int) -> str:
    """Return an amount with its unit."""
    return _format(measure, amount, "")


def format_limit(measure: str, amount: int, window: str) -> str:
    """Return a limit with its unit and window, e.g. “1,000 tokens per day”."""
    return _format(measure, amount, window)


def _format(measure: str, amount: int, window: str) -> str:
    pattern = _amount_form(measure, amount) if not window else _limit_form(measure, amount)
    names = {
        Window.MINUTE: _("minute"),
        Window.DAY: pgettext("budget", "day"),
        Window.MONTH: _("month"),
    }
    values = {"amount": format_money(amount)[1:], "count": short_amount(measure, amount)}
    if measure == Measure.SECONDS:
        values["count"] = f"{amount / MILLISECONDS:,.0f}"
    return pattern % {**values, "window": names.get(Window(window)) if window else ""}


def _amount_form(measure: str, amount: int) -> str:
    match measure:
        case Measure.COST:
            return "$%(amount)s"
        case Measure.RUNS:
            return ngettext("%(count)s run", "%(count)s runs", amount)
        case Measure.MESSAGES:
            return ngettext("%(count)s message", "%(count)s messages", amount)
        case Measure.CALLS:
            return ngettext("%(count)s call", "%(count)s calls", amount)
        case Measure.SECONDS:
            return _("%(count)s s")
    return ngettext("%(count)s token", "%(count)s tokens", amount)


def _limit_form(measure: str, amount: int) -> str:
    match measure:
        case Measure.COST:
            return _("$%(amount)s per %(window)s")
        case Measure.RUNS:
            return ngettext(
                "%(count)s run per %(window)s", "%(count)s runs per %(window)s", amount
            )
        case Measure.MESSAGES:
            return ngettext(
                "%(count)s message per %(window)s", "%(count)s messages per %(window)s", amount
            )
        case Measure.CALLS:
            return ngettext(
                "%(count)s call per %(window)s", "%(count)s calls per %(window)s", amount
            )
        case Measure.SECONDS:
            return _("%(count)s s of active time per %(window)s")
    return ngettext("%(count)s token per %(window)s", "%(count)s tokens per %(window)s", amount)
