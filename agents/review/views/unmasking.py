"""Unmasks another user's run, for a reason that is audited."""

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from agents.access import audit, masking
from agents.access.requests import UserRequest
from agents.review.run_details.audited_reading import open_run

MAX_REASON_CHARS = 1_000


@require_POST
def unmask(request: UserRequest, pk: int) -> HttpResponse:
    readable = open_run(request, pk)
    if not request.user.has_perm(masking.UNMASK_PERMISSION):
        raise Http404
    if "again" in request.POST:
        masking.remask(readable.row, request.session)
        return redirect("trace:run", pk)
    if not readable.is_masked:
        raise Http404
    reason = request.POST.get("reason", "").replace("\0", "").strip()[:MAX_REASON_CHARS]
    if not reason:
        context = {"view": readable.view(), "problem": _("Enter a reason.")}
        return render(request, "trace/unmask.html", context, status=422)
    audit.record(request.user, audit.UNMASKED, readable.row, reason=reason)
    masking.unmask(readable.row, request.session)
    return redirect("trace:run", pk)
