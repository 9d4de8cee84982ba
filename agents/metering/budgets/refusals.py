"""Why a limit refuses something, as data and in words."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.utils import timezone

from agents.engine.errors import QuotaExceeded
from agents.engine.sentences import Sentence
from agents.engine.sentences import Sentence as _
from agents.engine.spending import Refusal, RefusalReason

from .limits import Limit
from .measures import amount_sentence, limit_sentence, short_amount


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
    """Return the error with a sentence and advice."""
    return QuotaExceeded(sentence(refusal), advice=advice(refusal), refusal=refusal)


def sentence(refusal: Refusal) -> str:
    """Return which limit refused, with what was used."""
    template = SENTENCES[refusal.reason]
    if refusal.reason == "spent":
        template = OWN_SENTENCES.get(refusal.scope, template)
    return template.fill(
        most=limit_sentence(refusal.measure, refusal.limit, refusal.window),
        used=short_amount(refusal.measure, refusal.spent),
        held=short_amount(refusal.measure, refusal.held),
        needed=amount_sentence(refusal.measure, refusal.needed),
        model=refusal.model or _("This model"),
        scope=scope_phrase(refusal.scope, refusal.name),
    )


# Of a spent limit of the one who asks.
OWN_SENTENCES: dict[str, Sentence] = {
    "user": _("You've reached your limit of %(most)s (used: %(used)s)."),
    "key": _("This API key has reached its limit of %(most)s (used: %(used)s)."),
}
SENTENCES: dict[str, Sentence] = {
    "spent": _("The limit of %(most)s for %(scope)s is used up (used: %(used)s)."),
    "busy": _(
        "Calls in progress have reserved the rest of the limit of %(most)s for %(scope)s "
        "(used: %(used)s, reserved: %(held)s)."
    ),
    "too_large": _(
        "This request needs at least %(needed)s, more than the whole limit of %(most)s for "
        "%(scope)s."
    ),
    "no_price": _(
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


def reset_sentence(resets_at: datetime) -> str:
    """Return when a limit starts over, in the reader's time zone and any language."""
    local = timezone.localtime(resets_at)
    when = f"{local:%Y-%m-%d %H:%M} ({local:%Z})"
    return _("The limit resets on %(when)s.", when=when)


def scope_phrase(scope: str, name: str) -> str:
    """Return a scope as part of a sentence."""
    match scope:
        case "user":
            return _("you")
        case "group":
            return _("the group %(name)s", name=name)
        case "agent":
            return _("the agent %(name)s", name=name)
        case "model":
            return _("the model %(name)s", name=name)
        case "tool":
            return _("the tool %(name)s", name=name)
        case "key":
            return _("the API key %(name)s", name=name)
    return _("all users together")
