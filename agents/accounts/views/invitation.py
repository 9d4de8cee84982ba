"""The page that an invitation leads to."""

from typing import Any

from django import forms
from django.contrib.auth import get_user_model
from django.contrib.auth.forms import SetPasswordForm
from django.contrib.auth.models import User
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from agents.access.audit.request_context import client_address
from agents.accounts import sign_in as sign_in_service
from agents.accounts.users import confusable_names, invitations, profiles
from agents.web import request_rate

from .sign_in import after_first_factor

NAME_TAKEN = _("This name isn't available. Choose another one.")
MAX_VISITS = 30  # per minute and address


class AcceptForm(SetPasswordForm):
    """A name and a password for a new account."""

    username = forms.CharField(
        label=_("Username"),
        max_length=150,
        help_text=_("Used to sign in and visible to other users."),
    )
    first_name = forms.CharField(label=_("First name"), max_length=150, required=False)
    last_name = forms.CharField(label=_("Last name"), max_length=150, required=False)
    field_order = ["username", "first_name", "last_name"]

    def clean_username(self) -> str:
        people = get_user_model()
        name: str = people.normalize_username(self.cleaned_data["username"])
        people._meta.get_field("username").run_validators(name)
        if confusable_names.skeleton(name) in profiles.taken_skeletons():
            raise forms.ValidationError(NAME_TAKEN)
        return name


@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def accept(request: HttpRequest, token: str) -> HttpResponse:
    """Create an account with the invitation's role and groups."""
    if request_rate.is_exceeded("invitation", client_address(request), MAX_VISITS):
        return _render(request, 429, problem=_now("Too many attempts. Wait a minute."))
    if request.user.is_authenticated:
        return _render(request, 200, who=request.user.get_username())
    try:
        invitation = invitations.check(invitations.find(token))
    except invitations.InvitationRejected as reason:
        return _render(request, 404, problem=str(reason))
    form = AcceptForm(User(email=invitation.email), request.POST or None)
    if request.method == "GET" or not form.is_valid():
        status = 200 if request.method == "GET" else 422
        return _render(request, status, form=form, invitation=invitation)
    values = form.cleaned_data
    try:
        user = invitations.accept(
            invitation,
            values["username"],
            password=values["new_password1"],
            first_name=values["first_name"],
            last_name=values["last_name"],
        )
    except invitations.InvitationRejected as reason:
        return _render(request, 404, problem=str(reason))
    except IntegrityError:  # the name was taken a moment ago
        form.add_error("username", NAME_TAKEN)
        return _render(request, 422, form=form, invitation=invitation)
    return after_first_factor(request, user, "password", reverse("chat:new"))


@never_cache
@require_POST
def accept_with_sso(request: HttpRequest, token: str) -> HttpResponse:
    """Go to the identity provider; the account is created when it sends the browser back."""
    if request_rate.is_exceeded("invitation", client_address(request), MAX_VISITS):
        return _render(request, 429, problem=_now("Too many attempts. Wait a minute."))
    if request.user.is_authenticated or not sign_in_service.sso_name():
        return redirect("people:invitation", token)
    try:
        invitation = invitations.check(invitations.find(token))
    except invitations.InvitationRejected as reason:
        return _render(request, 404, problem=str(reason))
    request.session[invitations.SESSION_KEY] = invitation.digest
    return _render(request, 200, invitation=invitation, is_leaving=True)


def _render(request: HttpRequest, status: int, **context: Any) -> HttpResponse:
    context |= {"service": sign_in_service.sso_name()}
    return render(request, "people/invitation.html", context, status=status)
