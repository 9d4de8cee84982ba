"""Cookies that come back with the browser from the identity provider."""

from django.conf import settings
from django.http import HttpResponse
from django.urls import reverse


def set_cookie(response: HttpResponse, name: str, value: str, max_age: int) -> None:
    response.set_cookie(
        name,
        value,
        max_age=max_age,
        path=reverse("people:oidc"),
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
