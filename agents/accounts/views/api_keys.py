"""“API keys”: a user's own keys, for programs that act for them."""

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.access.requests import UserRequest
from agents.accounts import sign_in
from agents.accounts.users import api_key_examples, api_keys
from agents.accounts.users.api_key_form import ApiKeyForm
from agents.db.installation import configured

from .connected_apps import connected_apps


@never_cache
@require_GET
def keys_page(request: UserRequest) -> HttpResponse:
    """List the user's keys; revoked and expired ones are history."""
    rows = api_keys.rows(api_keys.personal_keys(request.user))
    context = {
        "rows": [row for row in rows if row.state in {"active", "stopped"}],
        "ended": [row for row in rows if row.state in {"expired", "revoked"}],
        "may_make": configured.PERSONAL_API_KEYS.value,
        "addresses": api_key_examples.addresses(request),
        "apps": connected_apps(request.user),
    }
    return render(request, "people/api_keys.html", context)


@never_cache
@sensitive_variables("token", "context")
@require_http_methods(["GET", "POST"])
def new_key(request: UserRequest) -> HttpResponse:
    """Make a key and display its secret, once."""
    if not configured.PERSONAL_API_KEYS.value:
        raise Http404
    if not sign_in.is_confirmed(request):
        return redirect(sign_in.request_confirmation(request, reverse("people:new_api_key")))
    form = ApiKeyForm(request.user, request.POST if request.method == "POST" else None)
    if request.method == "GET" or not form.is_valid():
        status = 422 if form.errors else 200
        return render(request, "people/new_api_key.html", {"form": form}, status=status)
    key, token = api_keys.make(request.user, request.user, form.new_key())
    context = {
        "row": api_keys.KeyRow(key=key),
        "token": token,
        "addresses": api_key_examples.addresses(request),
        "examples": api_key_examples.examples(request, key, token),
    }
    return render(request, "people/api_key.html", context)


@require_POST
def revoke_key(request: UserRequest, pk: int) -> HttpResponse:
    """Revoke a key without confirmation of identity, because a leak is urgent."""
    key = get_object_or_404(api_keys.personal_keys(request.user), pk=pk)
    if api_keys.revoke(request.user, [key]):
        messages.success(request, _("Key revoked. Programs that use it are now rejected."))
    return redirect("people:api_keys")
