"""Sentences about the notes of a step: waited, retried, fell back, shortened."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from agents.db.sentences import translate
from agents.engine import guardrails, result_cache
from agents.engine.events import REPORTED_USAGE_NOTE, StatusKind

from ..formats import dates
from ..formats.status_text import queue_note, short_seconds
from .progress import ProgressView

Facts = dict[str, Any]


def note_sentence(facts: Facts) -> str:
    """Return a note as a sentence; an empty string if users needn't know."""
    facts = facts | {"message": translate(facts.get("message", ""))}
    if template := TEMPLATES.get(facts["kind"]):
        return _(template) % facts
    write = WRITERS.get(facts["kind"])
    return write(facts) if write else ""


def _slow_sentence(facts: Facts) -> str:
    return _("The model was slow: no output for %(seconds)s s.") % short_seconds(facts)


def _retry_sentence(facts: Facts) -> str:
    if not facts.get("tool"):
        return _("Retried after %(seconds)s s: %(message)s") % facts
    sentence = _("Attempt %(attempt)s of %(tool)s after %(seconds)s s: %(message)s")
    return sentence % short_seconds(facts)


def _sampling_sentence(facts: Facts) -> str:
    if facts["message"]:
        return _("%(source)s wasn't allowed to call the model: %(message)s") % facts
    return _("%(source)s called the model (%(model)s).") % facts


def _progress_sentence(facts: Facts) -> str:
    progress = ProgressView.of([facts])
    return progress.sentence if progress else ""


def _tool_fallback_sentence(facts: Facts) -> str:
    sentence = _("%(tool)s failed, so %(stand_in)s was used instead: %(message)s")
    if facts.get("is_preferred"):
        sentence = _("%(stand_in)s was called, because %(tool)s is less reliable: %(message)s")
    return sentence % facts


def _reranked_sentence(facts: Facts) -> str:
    if facts["message"]:
        return _("Not re-ranked: %(message)s") % facts
    return _("Re-ranked by %(model)s.") % facts


def _unsent_attachments_sentence(facts: Facts) -> str:
    return ngettext(
        "%(count)d attachment wasn't sent to the model: %(message)s.",
        "%(count)d attachments weren't sent to the model: %(message)s.",
        facts["count"],
    ) % {"count": facts["count"], "message": facts["message"]}


def _verdict_sentence(facts: Facts) -> str:
    """Return what the model of a model check found; its reason is for reviewers."""
    if "error" in facts:
        params = {"model": facts["model"], "why": translate(facts["error"])}
        return _("%(model)s gave no verdict: %(why)s") % params
    if facts["verdict"] == "violation":
        return _("%(model)s found a violation (%(confidence)s%% sure).") % facts
    return _("%(model)s found no violation (%(confidence)s%% sure).") % facts


def _cached_sentence(facts: Facts) -> str:
    """Return that a result was saved earlier, until when it is used, and what it saved."""
    if facts.get("is_joined"):
        return _("An identical call was already running, so its result was used (no cost).")
    params = {"at": _moment(facts["at"]), "until": _moment(facts.get("expires", ""))}
    saved = _("From cache (no cost): saved %(at)s, expires %(until)s.") % params
    cost = (facts.get("saved") or {}).get("cost")
    if isinstance(cost, int | float) and cost > 0:
        return saved + " " + _("Saved %(cost)s.") % {"cost": f"${cost:.4f}"}
    return saved


def _reported_usage_sentence(facts: Facts) -> str:
    """Return which numbers of the provider were too high."""
    numbers = facts["reported"] if isinstance(facts["reported"], dict) else {}
    listed = ", ".join(f"{name} {number:,}" for name, number in numbers.items())
    sentence = _(
        "The provider reported more usage than this request could have had: %(reported)s. "
        "The highest possible usage was counted instead."
    )
    return sentence % {"reported": listed}


def _moment(text: str) -> str:
    if not text:
        return dates.DASH
    moment = timezone.localtime(datetime.fromisoformat(text))
    is_today = moment.date() == timezone.localdate()
    return dates.time_text(moment) if is_today else dates.datetime_text(moment)


def _selected_tools_sentence(facts: Facts) -> str:
    sent_count = len(facts["sent"]) if isinstance(facts["sent"], list) else 0
    params = {"sent": sent_count, "all": sent_count + facts["count"]}
    return _("Sent the %(sent)s of %(all)s tools that fit the message.") % params


def _unsent_tool_sentence(facts: Facts) -> str:
    if not facts["is_known"]:
        return _("The model called %(tool)s, which doesn't exist.") % facts
    if facts["how"] == "bridge":
        return (
            _("The model called %(tool)s through call_tool, but this tool wasn't sent to it.")
            % facts
        )
    return _("The model called %(tool)s, which wasn't sent to it.") % facts


def _files_read_sentence(facts: Facts) -> str:
    sentence = _("The attached files were read with %(model)s.") % facts
    cost = facts.get("cost")
    if isinstance(cost, int | float):
        price = _("Cost: %(cost)s.") % {"cost": f"${cost:.4f}"}
    else:
        price = _("The cost is unknown.")
    return f"{sentence} {price}"


def _removed_citations_sentence(facts: Facts) -> str:
    numbers = facts["numbers"]
    removed = numbers if isinstance(numbers, list) else [numbers]
    sentence = ngettext(
        "Removed %(count)d citation to a source that was never retrieved: %(numbers)s.",
        "Removed %(count)d citations to sources that were never retrieved: %(numbers)s.",
        len(removed),
    )
    listed = ", ".join(f"[{number}]" for number in removed)
    return sentence % {"count": len(removed), "numbers": listed}


def _returned_figures_sentence(facts: Facts) -> str:
    figures = facts["figures"]
    listed = figures if isinstance(figures, list) else [figures]
    sentence = ngettext(
        "Sent back to the model: %(count)d figure isn't in any result: %(figures)s.",
        "Sent back to the model: %(count)d figures aren't in any result: %(figures)s.",
        len(listed),
    )
    return sentence % {"count": len(listed), "figures": ", ".join(map(str, listed))}


def memory_sentences(facts: Facts) -> list[str]:
    """Return what was recalled, saved, suggested or refused."""
    sentences = []
    if used := facts.get("used"):
        sentences.append(
            ngettext("Used %(count)d memory.", "Used %(count)d memories.", len(used))
            % {"count": len(used)}
        )
    for saved in facts.get("saved", ()):
        sentences.append(_("Saved to memory: “%(text)s”.") % {"text": saved["text"]})
    for suggested in facts.get("suggested", ()):
        sentences.append(_("Suggested for memory: “%(text)s”.") % {"text": suggested["text"]})
    if reason := facts.get("refused"):
        sentences.append(_("Not saved to memory. %(reason)s") % {"reason": reason})
    return sentences


def experience_sentence(facts: Facts) -> str:
    """Return how many experiences were recalled."""
    count = len(facts["used"])
    return ngettext("Used %(count)d lesson.", "Used %(count)d lessons.", count) % {
        "count": count
    }


def summary_sentence(facts: Facts) -> str:
    """Return that older turns were replaced by a summary."""
    return ngettext(
        "%(count)d earlier turn was summarized (%(count)d → 1).",
        "%(count)d earlier turns were summarized (%(count)d → 1).",
        facts["turns"],
    ) % {"count": facts["turns"]}


def _compaction_sentence(facts: Facts) -> str:
    if facts.get("summary"):
        return summary_sentence(facts)
    sentences = []
    dropped = facts["dropped"]
    if "replaced" in facts:
        template = ngettext(
            "%(count)d earlier turn was left out because of the agent's history limit.",
            "%(count)d earlier turns were left out because of the agent's history limit.",
            dropped,
        )
        sentences.append(template % {"count": dropped})
        if facts["message"]:
            sentences.append(_("No summary: %(reason)s") % {"reason": facts["message"]})
        return " ".join(sentences)
    sentences.append(_("To fit the model’s context window:"))
    if dropped:
        template = ngettext(
            "%(count)d earlier message was left out.",
            "%(count)d earlier messages were left out.",
            dropped,
        )
        sentences.append(template % {"count": dropped})
    if shortened := facts["shortened"]:
        template = ngettext(
            "%(count)d long text was shortened.",
            "%(count)d long texts were shortened.",
            shortened,
        )
        sentences.append(template % {"count": shortened})
    return " ".join(sentences)


# Notes whose sentence is always the same.
TEMPLATES: dict[str, str] = {
    StatusKind.MODEL_FALLBACK: gettext_noop("Fell back from %(from)s to %(to)s: %(message)s"),
    StatusKind.DEGRADED: gettext_noop(
        "%(tool)s is failing and won't be used again in this run."
    ),
    StatusKind.RESUMED: gettext_noop("The server restarted here and the run resumed."),
    StatusKind.REPLAYED: gettext_noop(
        "Replayed from the original run up to here (no cost). Live from here on."
    ),
    StatusKind.FINISHED_ANYWAY: gettext_noop(
        "Too late to stop: the call had already finished. This is its result."
    ),
    StatusKind.EARLIER_SOURCES: gettext_noop(
        "Cites passages that were found for an earlier answer."
    ),
    StatusKind.EMBEDDED_INSTRUCTIONS: gettext_noop(
        "This text contains instructions to the model: “%(message)s”. From here "
        "on, calls with side effects may require approval."
    ),
}
WRITERS: dict[str, Callable[[Facts], str]] = {
    StatusKind.SLOW: _slow_sentence,
    StatusKind.LIMITED: queue_note,
    StatusKind.RETRY: _retry_sentence,
    StatusKind.SAMPLING: _sampling_sentence,
    StatusKind.TOOL_PROGRESS: _progress_sentence,
    StatusKind.TOOL_FALLBACK: _tool_fallback_sentence,
    StatusKind.COMPACTION: _compaction_sentence,
    StatusKind.MEMORY: lambda facts: " ".join(memory_sentences(facts)),
    StatusKind.EXPERIENCE: experience_sentence,
    StatusKind.FILES_READ: _files_read_sentence,
    StatusKind.FIGURES_RETURNED: _returned_figures_sentence,
    StatusKind.CITATIONS_REMOVED: _removed_citations_sentence,
    StatusKind.RERANKED: _reranked_sentence,
    StatusKind.TOOLS_SELECTED: _selected_tools_sentence,
    StatusKind.UNSENT_TOOL: _unsent_tool_sentence,
    StatusKind.UNSENT_ATTACHMENTS: _unsent_attachments_sentence,
    result_cache.CACHED_NOTE: _cached_sentence,
    guardrails.JUDGED_NOTE: _verdict_sentence,
    REPORTED_USAGE_NOTE: _reported_usage_sentence,
}
