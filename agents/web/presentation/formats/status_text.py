"""Sentences about a run: how it ended, and what it is waiting for."""

import re
from collections.abc import Sequence
from typing import Any

from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from agents.db.sentences import translate
from agents.engine.events import StatusKind
from agents.engine.loop import StopReason
from agents.models import Run

# The engine's message for a workflow that a person rejected, now and in older runs.
DECLINED_PATTERN = re.compile(
    r"“(?P<step>.+)”: (?P<person>.+?) (?:rejected this|declined)\."
    r"(?: (?:Comment|They said): “(?P<words>.+)”\.)?",
    re.DOTALL,
)


def ending_sentence(run: Run, *, is_shared: bool = False) -> str:
    """Return how a run ended, unless simply with an answer; others may have been involved."""
    match run.stopped_reason:
        case StopReason.COMPLETED | "":
            return translate(run.detail)
        case StopReason.CANCELLED if declined := DECLINED_PATTERN.fullmatch(run.detail):
            params = declined.groupdict()
            ended = _("%(person)s rejected “%(step)s”, so the workflow ended here.") % params
            quote = _("Comment: “%(words)s”.") % params
            return f"{ended} {quote}" if params["words"] else ended
        case StopReason.CANCELLED if run.detail:
            return _("Stopped. %(reason)s") % {"reason": translate(run.detail)}
        case StopReason.CANCELLED if is_shared:
            return _("This run was stopped. The output so far was saved.")
        case StopReason.CANCELLED:
            return _("You stopped this run. The output so far was saved.")
        case StopReason.INTERRUPTED:
            return _("The server stopped during this run, so it couldn't finish. Run it again.")
        case StopReason.DEGRADED:
            return _("A tool was unavailable, so the agent answered without it.")
        case StopReason.MAX_STEPS:
            return ngettext(
                "No answer after %(steps)d step. Continue, or ask for less.",
                "No answer after %(steps)d steps. Continue, or ask for less.",
                run.max_steps,
            ) % {"steps": run.max_steps}
        case StopReason.DUPLICATE:
            return _("Stopped: the agent repeated the same tool call too many times.")
        case StopReason.TOOL_LIMIT:
            return _("Stopped: the agent called one tool too many times.")
        case StopReason.BUDGET:
            return _("Stopped. %(limit)s.") % {"limit": translate(run.detail).rstrip(".。")}
        case StopReason.BLOCKED:
            return _("Blocked by a guardrail: %(reason)s") % {"reason": translate(run.detail)}
    return translate(run.detail) or _("The run couldn't continue.")


def waiting_sentence(notes: Sequence[dict[str, Any]]) -> str:
    """Return what a live step is waiting for, according to its last note."""
    facts: dict[str, Any] = notes[-1] if notes else {"kind": ""}
    match facts["kind"]:
        case StatusKind.SLOW:
            return _("The model is slow: no output for %(seconds)s s.") % short_seconds(facts)
        case StatusKind.LIMITED:
            reason = _limit_sentence(facts)
            position = facts.get("place")  # in its model's line
            if position is None:
                return _("Waiting: %(why)s") % {"why": reason}
            if position == 0:
                return ""  # it is its turn
            params = {"model": facts["model"], "place": _ordinal(position), "why": reason}
            if position == 1:
                return _("Waiting for %(model)s: next in the queue. %(why)s") % params
            return _("Waiting for %(model)s: %(place)s in the queue. %(why)s") % params
        case StatusKind.RETRY if facts.get("tool"):
            facts = facts | {"message": translate(facts["message"])}
            return _("Retrying (attempt %(attempt)s): %(message)s") % facts
        case StatusKind.RETRY:
            facts = short_seconds(facts) | {"message": translate(facts["message"])}
            return _("Retrying in %(seconds)s s: %(message)s") % facts
    return ""


def queue_note(facts: dict[str, Any]) -> str:
    """Return how long a step waited for its model, and for which limit."""
    why = _limit_sentence(facts)
    if facts.get("place", 1):
        return _("Waited: %(why)s") % {"why": why}
    seconds = f"{facts['waited']:.1f}".removesuffix(".0")
    return _("Waited %(seconds)s s: %(why)s") % {"seconds": seconds, "why": why}


def _ordinal(number: int) -> str:
    """Return 3rd in English, and the number as it is in languages without such endings."""
    if not (get_language() or "en").startswith("en"):
        return str(number)
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else ending}"


def _limit_sentence(facts: dict[str, Any]) -> str:
    match facts["limit"]:
        case "requests":
            return _("%(model)s has a request limit of %(most)s per minute.") % facts
        case "tokens":
            return _("%(model)s has a token limit of %(most)s per minute.") % facts
    return _("%(model)s has a concurrency limit of %(most)s.") % facts


def short_seconds(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts with seconds as they are written: 2.5, not 2.50."""
    return facts | {"seconds": f"{facts['seconds']:g}"}
