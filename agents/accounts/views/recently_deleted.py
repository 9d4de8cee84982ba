"""“Recently deleted”: what a user deleted and can restore."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from agents.access.requests import UserRequest
from agents.web import recently_deleted


@never_cache
@require_GET
def deleted_page(request: UserRequest) -> HttpResponse:
    context = recently_deleted.list_context(request)
    return render(request, "people/recently_deleted.html", context)


@require_POST
def restore(request: UserRequest) -> HttpResponse:
    return recently_deleted.restore(request)


@require_POST
def erase(request: UserRequest) -> HttpResponse:
    return recently_deleted.erase(request)
