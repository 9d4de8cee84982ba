"""A user's notifications, and the link to them with its count."""

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from agents.access.requests import UserRequest
from agents.insight.problems.models import Problem

from .messages import facts, notification_title
from .models import Notification

PAGE_SIZE = 50


@require_GET
def notifications(request: UserRequest) -> HttpResponse:
    """List the user's notifications, newest first."""
    rows = _own(request).select_related("problem")
    page = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    pks = [row.problem_id for row in page if row.problem_id]
    visible_problems = Problem.objects.for_user(request.user).filter(pk__in=pks)
    visible_pks = set(visible_problems.values_list("pk", flat=True))
    lines = [_line(row, row.problem_id in visible_pks) for row in page]
    unread = any(line["is_unread"] for line in lines)
    context = {"page": page, "lines": lines, "unread": unread, "here": "notifications"}
    if not request.user.is_staff:
        return render(request, "alerts/notifications.html", context)
    shell = {**admin.site.each_context(request), "title": _("Notifications")}
    return render(request, "admin/alerts/notifications.html", shell | context)


@require_POST
def mark_read(request: UserRequest) -> HttpResponse:
    _own(request).filter(read_at=None).update(read_at=timezone.now())
    return redirect("alerts:notifications")


@require_GET
def notifications_link(request: UserRequest) -> HttpResponse:
    """Render the link with its count; pages poll it."""
    return render(request, "alerts/_link.html")


@require_GET
def open_notification(request: UserRequest, pk: int) -> HttpResponse:
    """Mark a notification as read and go to what it is about."""
    row = get_object_or_404(_own(request), pk=pk)
    Notification.objects.filter(pk=row.pk, read_at=None).update(read_at=timezone.now())
    if row.run_id is not None:
        return redirect("trace:run", row.run_id)
    if row.collection_id is not None:
        return redirect("library:list")
    if row.problem_id is None:
        return redirect("alerts:notifications")
    return redirect("admin:problems_problem_change", row.problem_id)


def _own(request: UserRequest) -> QuerySet[Notification]:
    return Notification.objects.filter(user=request.user)


def _line(row: Notification, is_visible: bool) -> dict[str, object]:
    """Return what is displayed: of a problem only what the user can still see."""
    problem = row.problem if is_visible else None
    if problem is not None:
        title = notification_title(row.event, problem)
        text = facts(problem)
    elif row.problem_id:
        title = _("A problem that you can't see any more")
        text = ""
    else:
        title, _line_break, text = row.text.partition("\n")
    has_page = bool(problem or row.run_id or row.collection_id)
    return {
        "title": title,
        "text": text.strip(),
        "at": row.created_at,
        "is_unread": row.read_at is None,
        "url": reverse("alerts:open", args=[row.pk]) if has_page else "",
    }
