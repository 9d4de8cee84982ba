"""What happened, in a sentence for the person who asked."""

import re
from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.engine.loop import StopReason
from agents.models import Run
from agents.runs.engine_messages import translate

# What the engine says of a workflow that ended by a person's no.
DECLINED_PATTERN = re.compile(
    r"“(?P<step>.+)”: (?P<person>.+?) declined\.(?: They said: “(?P<words>.+)”\.)?", re.DOTALL
)


def ending_sentence(run: Run, *, is_shared: bool = False) -> str:
    """What became of a run, where that is not simply an answer; several may have seen to it."""
    match run.stopped_reason:
        case StopReason.COMPLETED | "":
            return translate(run.detail)
        case StopReason.CANCELLED if declined := DECLINED_PATTERN.fullmatch(run.detail):
            return _declined_sentence(**declined.groupdict())
        case StopReason.CANCELLED if run.detail:
            return _("Cancelled: %(reason)s") % {"reason": translate(run.detail)}
        case StopReason.CANCELLED if is_shared:
            return _("This run was stopped. What was said so far is kept.")
        case StopReason.CANCELLED:
            return _("You stopped this run. What was said so far is kept.")
        case StopReason.INTERRUPTED:
            return _("The server stopped during this run, so it was given up. Ask again.")
        case StopReason.DEGRADED:
            return _("A tool was out of order, so this answer was given without it.")
        case StopReason.MAX_STEPS:
            return ngettext(
                "No answer within %(steps)d step. Continue, or ask for less.",
                "No answer within %(steps)d steps. Continue, or ask for less.",
                run.max_steps,
            ) % {"steps": run.max_steps}
        case StopReason.DUPLICATE:
            return _("Stopped: the agent asked the same tool the same thing again and again.")
        case StopReason.TOOL_LIMIT:
            return _("Stopped: the agent called one tool too often.")
        case StopReason.BUDGET:
            return _("Stopped: the run has used up its budget (%(limit)s)") % {
                "limit": translate(run.detail).rstrip(".。")
            }
        case StopReason.BLOCKED:
            return _("Blocked by a guardrail: %(reason)s") % {"reason": translate(run.detail)}
    return translate(run.detail) or _("The run could not go on.")


def _declined_sentence(step: str, person: str, words: str | None) -> str:
    about = {"step": step, "person": person}
    ended = _("%(person)s declined “%(step)s”, so the workflow ended here.") % about
    said = _("They said: “%(words)s”.") % {"words": words}
    return f"{ended} {said}" if words else ended


def note_sentence(facts: dict[str, Any]) -> str:
    """What happened on the way of a step: waited, asked again, fallen back, left out."""
    facts = {**facts, "message": translate(facts.get("message", ""))}
    match facts["kind"]:
        case "slow":
            return _("The model was slow: nothing came for %(seconds)s s.") % _short_seconds(
                facts
            )
        case "limited":
            return _("It waited for its turn: %(why)s") % {"why": _limit_sentence(facts)}
        case "retry":
            return _("Asked again after %(seconds)s s: %(message)s") % facts
        case "model_fallback":
            return _("%(from)s could not be used, so %(to)s was asked: %(message)s") % facts
        case "tool_fallback":
            return _("%(tool)s was out of order; %(stand_in)s answered: %(message)s") % facts
        case "degraded":
            return _("%(tool)s is out of order, and is not used again in this run.") % facts
        case "resumed":
            return _("The server was restarted here, and the run went on.")
        case "replayed":
            return _("Up to here it was told again, at no cost; from here on it ran live.")
        case "finished_anyway":
            return _("It could not be stopped any more: it was done, and this is its result.")
        case "compaction":
            return _compaction_sentence(facts["dropped"], facts["shortened"])
    return ""


def waiting_sentence(notes: Sequence[dict[str, Any]]) -> str:
    """What a step that has not ended is waiting for, where its last note says that."""
    facts = notes[-1] if notes else {"kind": ""}
    match facts["kind"]:
        case "slow":
            return _("The model is slow: nothing has come for %(seconds)s s.") % _short_seconds(
                facts
            )
        case "limited":
            return _("It waits for its turn: %(why)s") % {"why": _limit_sentence(facts)}
        case "retry":
            facts = _short_seconds(facts) | {"message": translate(facts["message"])}
            return _("Asks again in %(seconds)s s: %(message)s") % facts
    return ""


def _limit_sentence(facts: dict[str, Any]) -> str:
    match facts["limit"]:
        case "requests":
            return _("%(model)s may be asked %(most)s times a minute.") % facts
        case "tokens":
            return _("%(model)s may use %(most)s tokens a minute.") % facts
    return _("%(model)s answers at most %(most)s at once.") % facts


def _short_seconds(facts: dict[str, Any]) -> dict[str, Any]:
    return {**facts, "seconds": f"{facts['seconds']:g}"}


def _compaction_sentence(dropped: int, shortened: int) -> str:
    parts = [_("To fit the model’s window:")]
    if dropped:
        some = ngettext(
            "%(count)d earlier message was left out.",
            "%(count)d earlier messages were left out.",
            dropped,
        )
        parts.append(some % {"count": dropped})
    if shortened:
        some = ngettext(
            "%(count)d long text was shortened.",
            "%(count)d long texts were shortened.",
            shortened,
        )
        parts.append(some % {"count": shortened})
    return " ".join(parts)
