"""A run of somebody else, as it is: for a reason, and not unseen."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from agents.access import audit, masking
from agents.review.audited_reading import Reading, read

MOST_REASON = 1_000


@require_POST
def unmask(request: HttpRequest, pk: int) -> HttpResponse:
    found = read(request, pk)
    if not request.user.has_perm(masking.SEE_ALL):
        raise Http404
    if "again" in request.POST:
        masking.mask_again(found.row, request.session)
        return redirect("trace:run", pk)
    if not found.is_masked:
        raise Http404
    reason = request.POST.get("reason", "").replace("\0", "").strip()[:MOST_REASON]
    if not reason:
        return _asked_why(request, found)
    audit.record(request.user, audit.UNMASKED, found.row, reason=reason)
    masking.unmask(found.row, request.session)
    return redirect("trace:run", pk)


def _asked_why(request: HttpRequest, found: Reading) -> HttpResponse:
    context = {"view": found.view(), "problem": _("Say why you need to see it.")}
    return render(request, "trace/unmask.html", context, status=422)
