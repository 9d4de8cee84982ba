"""“Webhooks”: a user's own, with what they sent, on the account pages."""

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.access import audit
from agents.access.requests import UserRequest
from agents.db.installation import configured

from . import delivery
from .messages import test_message
from .models import AlertChannel
from .webhook_form import OwnWebhookForm

MAX_WEBHOOKS = 10
PAGE_SIZE = 25


@never_cache
@require_GET
def webhooks_page(request: UserRequest) -> HttpResponse:
    """List the user's webhooks."""
    rows = list(request.user.webhooks.select_related("agent"))
    for row in rows:
        vars(row)["last"] = row.deliveries.first()
    may_make = configured.PERSONAL_API_KEYS.value
    context = {
        "rows": rows,
        "may_make": may_make,
        "may_add": may_make and len(rows) < MAX_WEBHOOKS,
        "most": MAX_WEBHOOKS,
    }
    return render(request, "alerts/webhooks.html", context)


@never_cache
@sensitive_variables("secret")
@require_http_methods(["GET", "POST"])
def new_webhook(request: UserRequest) -> HttpResponse:
    """Make a webhook and display its signing secret, once."""
    if not configured.PERSONAL_API_KEYS.value:
        raise Http404
    if request.user.webhooks.count() >= MAX_WEBHOOKS:
        sentence = _("You can have up to %(most)d webhooks.")
        messages.error(request, sentence % {"most": MAX_WEBHOOKS})
        return redirect("alerts:webhooks")
    channel = AlertChannel(kind=AlertChannel.Kind.WEBHOOK, owner=request.user)
    data = request.POST if request.method == "POST" else None
    form = OwnWebhookForm(request.user, data, instance=channel)
    if data is None or not form.is_valid():
        status = 422 if form.errors else 200
        return render(request, "alerts/new_webhook.html", {"form": form}, status=status)
    channel.base_url = request.build_absolute_uri("/")[:200]
    secret = channel.new_secret()
    form.save()
    audit.record(request.user, audit.ADDED, channel, name=str(channel))
    return _render_secret(request, channel, secret)


@never_cache
@require_http_methods(["GET", "POST"])
def webhook_page(request: UserRequest, pk: int) -> HttpResponse:
    """Change a webhook, and list what it sent."""
    channel = _own(request, pk)
    data = request.POST if request.method == "POST" else None
    form = OwnWebhookForm(request.user, data, instance=channel)
    if data is not None and form.is_valid():
        channel.base_url = request.build_absolute_uri("/")[:200]
        if channel.enabled:
            channel.paused_at = channel.failing_since = None
        form.save()
        changed = sorted(form.changed_data)
        audit.record(request.user, audit.CHANGED, channel, name=str(channel), changes=changed)
        messages.success(request, _("Saved."))
        return redirect("alerts:webhook", pk)
    pages = Paginator(channel.deliveries.all(), PAGE_SIZE)
    context = {
        "channel": AlertChannel.objects.get(pk=pk),  # as it is saved
        "form": form,
        "page": pages.get_page(request.GET.get("page")),
    }
    return render(request, "alerts/webhook.html", context, status=422 if form.errors else 200)


@never_cache
@sensitive_variables("secret")
@require_POST
def rotate_secret(request: UserRequest, pk: int) -> HttpResponse:
    """Make a new signing secret; requests are signed with both for a day."""
    channel = _own(request, pk)
    secret = channel.new_secret()
    channel.save()
    audit.record(request.user, audit.SECRET_ROTATED, channel, name=str(channel))
    return _render_secret(request, channel, secret)


@require_POST
def test_webhook(request: UserRequest, pk: int) -> HttpResponse:
    """Send a test event now."""
    channel = _own(request, pk)
    outcome = delivery.send_test(channel, test_message(request.build_absolute_uri("/")))
    if outcome.is_accepted:
        values: dict[str, Any] = {"status": outcome.status, "ms": outcome.milliseconds}
        messages.success(request, _("Test event sent: HTTP %(status)d in %(ms)d ms.") % values)
    else:
        messages.error(request, _("The test failed: %(why)s") % {"why": outcome.error})
    return redirect("alerts:webhook", pk)


@require_POST
def replay_delivery(request: UserRequest, pk: int, number: int) -> HttpResponse:
    """Send a delivery again."""
    channel = _own(request, pk)
    get_object_or_404(channel.deliveries, pk=number)
    if delivery.replay(channel.deliveries.filter(pk=number)):
        audit.record(request.user, audit.WEBHOOK_REPLAYED, channel, name=str(channel))
        messages.success(request, _("Sending the delivery again."))
    return redirect("alerts:webhook", pk)


@require_POST
def delete_webhook(request: UserRequest, pk: int) -> HttpResponse:
    """Delete a webhook with its log."""
    channel = _own(request, pk)
    audit.record(request.user, audit.DELETED, channel, name=str(channel))
    channel.delete()
    messages.success(request, _("“%(name)s” was deleted.") % {"name": channel})
    return redirect("alerts:webhooks")


def _own(request: UserRequest, pk: int) -> AlertChannel:
    rows = AlertChannel.objects.filter(owner=request.user)
    return get_object_or_404(rows.select_related("agent"), pk=pk)


def _render_secret(request: UserRequest, channel: AlertChannel, secret: str) -> HttpResponse:
    context = {"channel": channel, "secret": secret}
    return render(request, "alerts/webhook_secret.html", context)
