"""A user's own usage and the limits that apply to it."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from agents.access.requests import UserRequest
from agents.accounts.users import quota_view


@never_cache
@require_GET
def usage_page(request: UserRequest) -> HttpResponse:
    """Display what the user's runs used today and this month, and what is left."""
    user = request.user
    context = {
        "quotas": quota_view.applying(user),
        "usage": quota_view.usage(user),
        "unpriced": quota_view.month_totals(user)["unpriced"],
    }
    return render(request, "people/usage.html", context)
