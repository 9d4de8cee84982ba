"""Status sentences for the user."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from agents.engine import guardrails, result_cache
from agents.engine.events import StatusKind
from agents.engine.loop import StopReason
from agents.models import Run
from agents.runs.engine_messages import translate

from . import dates
from .progress import ProgressView

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
            return _declined_sentence(**declined.groupdict())
        case StopReason.CANCELLED if run.detail:
            return _("Stopped. %(reason)s") % {"reason": translate(run.detail)}
        case StopReason.CANCELLED if is_shared:
            return _("This run was stopped. The output so far was saved.")
        case StopReason.CANCELLED:
            return _("You stopped this run. The output so far was saved.")
        case StopReason.INTERRUPTED:
            return _("The server stopped during this run, so it couldn't finish. Ask again.")
        case StopReason.DEGRADED:
            return _("A tool was unavailable, so the agent answered without it.")
        case StopReason.MAX_STEPS:
            return ngettext(
                "No answer after %(steps)d step. Continue, or ask a smaller question.",
                "No answer after %(steps)d steps. Continue, or ask a smaller question.",
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
    return translate(run.detail) or _("The run could not go on.")


def _declined_sentence(step: str, person: str, words: str | None) -> str:
    about = {"step": step, "person": person}
    ended = _("%(person)s rejected “%(step)s”, so the workflow ended here.") % about
    quote = _("Comment: “%(words)s”.") % {"words": words}
    return f"{ended} {quote}" if words else ended


def _verdict_sentence(facts: dict[str, Any]) -> str:
    """Return what the model of a model check said."""
    if "error" in facts:
        about = {"model": facts["model"], "why": translate(facts["error"])}
        return _("%(model)s gave no verdict: %(why)s") % about
    if facts["verdict"] == "violation":
        return _("%(model)s found a violation (%(confidence)s%% sure): %(reason)s") % facts
    return _("%(model)s found no violation (%(confidence)s%% sure): %(reason)s") % facts


def note_sentence(facts: dict[str, Any]) -> str:
    """Return a note about a step: waited, retried, fell back, shortened."""
    facts = facts | {"message": translate(facts.get("message", ""))}
    match facts["kind"]:
        case StatusKind.SLOW:
            return _("The model was slow: no output for %(seconds)s s.") % _short_seconds(facts)
        case StatusKind.LIMITED:
            return _queue_note(facts)
        case StatusKind.RETRY if facts.get("tool"):
            return _(
                "Attempt %(attempt)s of %(tool)s after %(seconds)s s: %(message)s"
            ) % _short_seconds(facts)
        case StatusKind.RETRY:
            return _("Retried after %(seconds)s s: %(message)s") % facts
        case StatusKind.SAMPLING if facts["message"]:
            return _("%(source)s asked the model and was refused: %(message)s") % facts
        case StatusKind.SAMPLING:
            return _("%(source)s asked the model (%(model)s).") % facts
        case StatusKind.TOOL_PROGRESS:
            progress = ProgressView.of([facts])
            return progress.sentence if progress else ""
        case StatusKind.MODEL_FALLBACK:
            return _("Fell back from %(from)s to %(to)s: %(message)s") % facts
        case StatusKind.TOOL_FALLBACK if facts.get("is_preferred"):
            return (
                _("%(stand_in)s was called, because %(tool)s is less reliable: %(message)s")
                % facts
            )
        case StatusKind.TOOL_FALLBACK:
            return _("%(tool)s failed, so %(stand_in)s was used instead: %(message)s") % facts
        case StatusKind.DEGRADED:
            return _("%(tool)s is failing and won't be used again in this run.") % facts
        case StatusKind.RESUMED:
            return _("The server restarted here and the run resumed.")
        case StatusKind.REPLAYED:
            return _("Replayed from the original run up to here (no cost). Live from here on.")
        case StatusKind.FINISHED_ANYWAY:
            return _("Too late to stop: the call had already finished. This is its result.")
        case StatusKind.COMPACTION if facts.get("summary"):
            return summary_sentence(facts)
        case StatusKind.COMPACTION if "replaced" in facts:
            return _left_out_sentence(facts)
        case StatusKind.COMPACTION:
            return _compaction_sentence(facts["dropped"], facts["shortened"])
        case StatusKind.MEMORY:
            return " ".join(memory_sentences(facts))
        case StatusKind.EXPERIENCE:
            return experience_sentence(facts)
        case StatusKind.FILES_READ:
            return _files_read_sentence(facts)
        case StatusKind.CITATIONS_REMOVED:
            return _removed_citations_sentence(facts["numbers"])
        case StatusKind.EARLIER_SOURCES:
            return _("Cites passages that were found for an earlier answer.")
        case StatusKind.RERANKED if facts["message"]:
            return _("Not re-ranked: %(message)s") % facts
        case StatusKind.RERANKED:
            return _("Re-ranked by %(model)s.") % facts
        case StatusKind.EMBEDDED_INSTRUCTIONS:
            return (
                _(
                    "This text contains instructions to the model: “%(message)s”. From here "
                    "on, calls with side effects may require approval."
                )
                % facts
            )
        case result_cache.CACHED_NOTE:
            return _cached_sentence(facts)
        case guardrails.JUDGED_NOTE:
            return _verdict_sentence(facts)
        case StatusKind.TOOLS_SELECTED:
            return _selected_tools_sentence(facts)
        case StatusKind.UNSENT_TOOL:
            return _unsent_tool_sentence(facts)
        case StatusKind.UNSENT_ATTACHMENTS:
            return ngettext(
                "%(count)d attachment wasn't sent to the model: %(message)s.",
                "%(count)d attachments weren't sent to the model: %(message)s.",
                facts["count"],
            ) % {"count": facts["count"], "message": facts["message"]}
    return ""


def _cached_sentence(facts: dict[str, Any]) -> str:
    """Return that a result was saved earlier, until when it is used, and what it saved."""
    if facts.get("is_joined"):
        return _("An identical call was already running, so its result was used (no cost).")
    about = {"at": _moment(facts["at"]), "until": _moment(facts.get("expires", ""))}
    saved = _("From cache (no cost): saved %(at)s, expires %(until)s.") % about
    cost = (facts.get("saved") or {}).get("cost")
    if isinstance(cost, int | float) and cost > 0:
        return saved + " " + _("Saved %(cost)s.") % {"cost": f"${cost:.4f}"}
    return saved


def _moment(text: str) -> str:
    if not text:
        return dates.DASH
    moment = timezone.localtime(datetime.fromisoformat(text))
    is_today = moment.date() == timezone.localdate()
    return dates.time_text(moment) if is_today else dates.datetime_text(moment)


def _selected_tools_sentence(facts: dict[str, Any]) -> str:
    sent = facts["sent"] if isinstance(facts["sent"], list) else []
    about = {"sent": len(sent), "all": len(sent) + facts["count"]}
    return _("Sent %(sent)s of %(all)s tools, those that fit the question.") % about


def _unsent_tool_sentence(facts: dict[str, Any]) -> str:
    if not facts["is_known"]:
        return _("The model called %(tool)s, which doesn't exist.") % facts
    if facts["how"] == "bridge":
        return _("The model called %(tool)s through call_tool. It wasn't sent.") % facts
    return _("The model called %(tool)s, which wasn't sent.") % facts


def _files_read_sentence(facts: dict[str, Any]) -> str:
    read = _("The attached files were read with %(model)s.") % facts
    cost = facts.get("cost")
    about = {"cost": f"${cost:.4f}"} if isinstance(cost, int | float) else None
    price = _("Cost: %(cost)s.") % about if about else _("The cost is unknown.")
    return f"{read} {price}"


def _removed_citations_sentence(numbers: Any) -> str:
    removed = numbers if isinstance(numbers, list) else [numbers]
    sentence = ngettext(
        "Removed %(count)d citation to a source that was never retrieved: %(numbers)s.",
        "Removed %(count)d citations to sources that were never retrieved: %(numbers)s.",
        len(removed),
    )
    listed = ", ".join(f"[{number}]" for number in removed)
    return sentence % {"count": len(removed), "numbers": listed}


def waiting_sentence(notes: Sequence[dict[str, Any]]) -> str:
    """Return what a live step is waiting for, according to its last note."""
    facts = notes[-1] if notes else {"kind": ""}
    match facts["kind"]:
        case StatusKind.SLOW:
            return _("The model is slow: no output for %(seconds)s s.") % _short_seconds(facts)
        case StatusKind.LIMITED if facts.get("place") == 0:
            return ""  # it is its turn
        case StatusKind.LIMITED:
            return _place_sentence(facts)
        case StatusKind.RETRY if facts.get("tool"):
            facts = facts | {"message": translate(facts["message"])}
            return _("Trying again (attempt %(attempt)s): %(message)s") % facts
        case StatusKind.RETRY:
            facts = _short_seconds(facts) | {"message": translate(facts["message"])}
            return _("Retrying in %(seconds)s s: %(message)s") % facts
    return ""


def _queue_note(facts: dict[str, Any]) -> str:
    """Return how long a step waited for its model, and for which limit."""
    why = _limit_sentence(facts)
    if facts.get("place", 1):
        return _("Waited: %(why)s") % {"why": why}
    seconds = f"{facts['waited']:.1f}".removesuffix(".0")
    return _("Waited %(seconds)s s: %(why)s") % {"seconds": seconds, "why": why}


def _place_sentence(facts: dict[str, Any]) -> str:
    """Return where a call stands in its model's line."""
    why, place = _limit_sentence(facts), facts.get("place")
    if place is None:
        return _("Waiting: %(why)s") % {"why": why}
    about = {"model": facts["model"], "place": _ordinal(place), "why": why}
    if place == 1:
        return _("Waiting for %(model)s: next in line. %(why)s") % about
    return _("Waiting for %(model)s: %(place)s in line. %(why)s") % about


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


def _short_seconds(facts: dict[str, Any]) -> dict[str, Any]:
    return facts | {"seconds": f"{facts['seconds']:g}"}


def memory_sentences(facts: dict[str, Any]) -> list[str]:
    """Return what was recalled, saved or refused."""
    found = []
    if used := facts.get("used"):
        found.append(
            ngettext("Used %(count)d memory.", "Used %(count)d memories.", len(used))
            % {"count": len(used)}
        )
    for saved in facts.get("saved", ()):
        found.append(_("Saved to memory: “%(text)s”.") % {"text": saved["text"]})
    if reason := facts.get("refused"):
        found.append(_("Not saved to memory. %(reason)s") % {"reason": reason})
    return found


def experience_sentence(facts: dict[str, Any]) -> str:
    """Return how many experiences were recalled."""
    count = len(facts["used"])
    return ngettext("Used %(count)d experience.", "Used %(count)d experiences.", count) % {
        "count": count
    }


def summary_sentence(facts: dict[str, Any]) -> str:
    """Return that older turns were replaced by a summary."""
    return ngettext(
        "%(count)d earlier turn was summarized (%(count)d → 1).",
        "%(count)d earlier turns were summarized (%(count)d → 1).",
        facts["turns"],
    ) % {"count": facts["turns"]}


def _left_out_sentence(facts: dict[str, Any]) -> str:
    left_out = ngettext(
        "%(count)d earlier turn was left out, because of the agent's history limit.",
        "%(count)d earlier turns were left out, because of the agent's history limit.",
        facts["dropped"],
    ) % {"count": facts["dropped"]}
    if not facts["message"]:
        return left_out
    reason = _("No summary: %(reason)s") % {"reason": facts["message"]}
    return f"{left_out} {reason}"


def _compaction_sentence(dropped: int, shortened: int) -> str:
    parts = [_("To fit the model’s context window:")]
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
