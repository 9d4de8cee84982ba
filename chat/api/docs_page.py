"""The reference of the REST API, for people. It loads neither the API nor ninja."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from agents.access.requests import UserRequest

DOCUMENT = "/api/v1/openapi.json"


@require_safe
def docs(request: UserRequest) -> HttpResponse:
    return render(request, "api/docs.html", {"document": DOCUMENT})
