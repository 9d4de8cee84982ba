"""Views that redirect to the sign-in service and back."""

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from agents.accounts import sign_in
from agents.accounts.openid import oidc
from agents.accounts.users import invitations

from .sign_in import after_first_factor, render_sign_in


@never_cache
@require_GET
def begin(request: HttpRequest) -> HttpResponse:
    if not sign_in.sso_name():
        return redirect("login")
    try:
        url, cookie = oidc.start_login(
            request, sign_in.next_url(request), is_fresh="fresh" in request.GET
        )
    except oidc.OidcError as reason:
        return render_sign_in(request, problem=str(reason))
    response = HttpResponseRedirect(url)
    oidc.set_state_cookie(response, cookie)
    return response


@never_cache
@require_GET
def back(request: HttpRequest) -> HttpResponse:
    if not sign_in.sso_name():
        return redirect("login")
    try:
        login_state = oidc.load_login_state(request)
    except oidc.OidcError as reason:
        # The browser's Back button after a sign-in leads here once more.
        if request.user.is_authenticated:
            return redirect("chat:new")
        return render_sign_in(request, problem=str(reason))
    response = _complete(request, login_state)
    # A state is used once, also if the sign-in failed.
    response.delete_cookie(oidc.COOKIE_NAME, path=reverse("people:oidc"))
    return response


def _complete(request: HttpRequest, login_state: oidc.LoginState) -> HttpResponse:
    try:
        account = oidc.fetch_account(request, login_state)
        user = oidc.get_or_create_user(account.claims, invitations.pending(request))
    except (oidc.OidcError, invitations.InvitationRejected) as reason:
        return render_sign_in(request, problem=str(reason), next=login_state.onward)
    provider_session = account.session.dump()
    if not oidc.is_multi_factor(account.claims):
        return after_first_factor(request, user, "oidc", login_state.onward, provider_session)
    sign_in.complete(request, user, "oidc", twice=True, provider_session=provider_session)
    return redirect(login_state.onward)
