"""Actions on several runs of the trace list."""

from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from agents.access import audit
from agents.access.requests import UserRequest
from agents.db import database, errors
from agents.db.sanitize import parse_id
from agents.review.annotations import feedback
from agents.review.filters.filter_language import clean, parse
from agents.review.run_list import bulk
from agents.review.run_list.bulk import Outcome, Selection
from agents.review.run_list.columns import Column
from agents.review.run_list.listing import is_reviewer
from agents.web.downloads import download

from .listing import ListLook

MAX_PICKED = 1_000


@require_POST
async def export_runs(request: UserRequest, file_format: str) -> HttpResponseBase:
    """Stream the selected runs or, if none is selected, all that match the filter."""
    if file_format not in bulk.FORMATS:
        raise Http404
    selection, columns = await database.run(_open_export, request, file_format)
    pieces = bulk.export(selection, columns, file_format)
    return download(pieces, f"runs.{file_format}", bulk.FORMATS[file_format])


@require_POST
def act_on_runs(request: UserRequest) -> HttpResponse:
    """Compare, flag or save the selected runs."""
    selection = _selection(request)
    # The list at the page that the action was on.
    back_url = ListLook.of(request).url(selection.run_filter.text)
    typed = {name: request.POST.get(name, "") for name in ("older", "newer", "page")}
    position = {name: text for name, text in typed.items() if text.isascii() and text.isdigit()}
    if position:
        back_url = f"{back_url}{'&' if '?' in back_url else '?'}{urlencode(position)}"
    if not selection.pks and "all" not in request.POST:
        messages.error(request, _("Select at least one run first."))
        return redirect(back_url)
    try:
        action, _colon, queue = request.POST.get("action", "").partition(":")
        match action:
            case "compare":
                pks, _has_more = selection.first(3)
                if len(pks) == 2:
                    return redirect("trace:compare", *sorted(pks))
                messages.error(request, _("Select exactly two runs to compare them."))
            case "flag":
                with errors.reraise_as(feedback.FeedbackRejected):
                    why = request.POST.get("why", "")
                    outcome = bulk.flag(selection, why, parse_id(queue))
                sentence = ngettext(
                    "%(count)d run flagged for review.",
                    "%(count)d runs flagged for review.",
                    outcome.done,
                )
                _report(request, outcome, sentence % {"count": outcome.done})
            case "example":
                with errors.reraise_as(feedback.FeedbackRejected):
                    outcome = bulk.save_examples(selection, request.session)
                sentence = ngettext(
                    "%(count)d run saved as an example.",
                    "%(count)d runs saved as examples.",
                    outcome.done,
                )
                _report(request, outcome, sentence % {"count": outcome.done})
    except feedback.FeedbackRejected as rejection:
        messages.error(request, str(rejection))
    return redirect(back_url)


def _open_export(request: UserRequest, file_format: str) -> tuple[Selection, list[Column]]:
    selection = _selection(request)
    look = ListLook.of(request)
    if is_reviewer(request.user):
        # One entry: the file has no more of each run than the list.
        details = {"selected": len(selection.pks)} if selection.pks else {"selected": "all"}
        audit.record(request.user, audit.LIST_EXPORTED, "runs", form=file_format, **details)
    return selection, look.columns


def _selection(request: UserRequest) -> Selection:
    run_filter = parse(clean(request.POST.get("q", "")), is_reviewer=is_reviewer(request.user))
    typed = request.POST.getlist("run")[:MAX_PICKED]
    pks = [int(pk) for pk in typed if pk.isascii() and pk.isdigit() and len(pk) < 19]
    return Selection(
        user=request.user, run_filter=run_filter, pks=() if "all" in request.POST else pks
    )


def _report(request: UserRequest, outcome: Outcome, done: str) -> None:
    level = messages.SUCCESS if outcome.done else messages.WARNING
    messages.add_message(request, level, " ".join(outcome.sentences(done)))
