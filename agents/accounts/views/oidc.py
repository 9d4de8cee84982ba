"""To another service and back, for whoever signs in by it."""

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from agents.accounts import oidc, sign_in

from .sign_in import after_one_factor, sign_in_page


@never_cache
@require_GET
def begin(request: HttpRequest) -> HttpResponse:
    if not sign_in.service():
        return redirect("login")
    try:
        place, kept = oidc.begin(
            request, sign_in.onward(request), is_fresh="fresh" in request.GET
        )
    except oidc.NotKnown as reason:
        return sign_in_page(request, problem=str(reason))
    response = HttpResponseRedirect(place)
    oidc.keep(response, kept)
    return response


@never_cache
@require_GET
def back(request: HttpRequest) -> HttpResponse:
    if not sign_in.service():
        return redirect("login")
    try:
        kept = oidc.begun(request)
        found = oidc.claims(request, kept)
        user = oidc.person(found)
    except oidc.NotKnown as reason:
        return sign_in_page(request, problem=str(reason))
    if oidc.proves_twice(found):
        sign_in.let_in(request, user, "oidc", twice=True)
        response: HttpResponse = redirect(kept.onward)
    else:
        response = after_one_factor(request, user, "oidc", kept.onward)
    response.delete_cookie(oidc.COOKIE, path=reverse("people:oidc"))
    return response
