from collections.abc import Callable
from importlib import import_module

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.urls import path

from .views import account, sign_in

app_name = "people"


def by_service(name: str) -> Callable[[HttpRequest], HttpResponse]:
    """Loaded by the first who comes: few need it, and it would hold up every start."""

    def view(request: HttpRequest) -> HttpResponse:
        return getattr(import_module("agents.accounts.views.oidc"), name)(request)

    return login_not_required(view)


urlpatterns = [
    path("login/second/", login_not_required(sign_in.second), name="second"),
    path("login/app/", login_not_required(sign_in.set_up), name="set_up"),
    path(
        "login/passkey/",
        login_not_required(sign_in.passkey_options),
        name="passkey_options",
    ),
    path("login/passkey/done/", login_not_required(sign_in.passkey), name="passkey"),
    path("login/oidc/", by_service("begin"), name="oidc"),
    path("login/oidc/back/", by_service("back"), name="oidc_back"),
    path("welcome/<str:uid>/<str:token>/", login_not_required(sign_in.welcome), name="welcome"),
    path("account/", account.page, name="account"),
    path("account/confirm/", account.confirm, name="confirm"),
    path("account/confirm/passkey/", account.confirm_options, name="confirm_options"),
    path("account/confirm/passkey/done/", account.confirm_passkey, name="confirm_passkey"),
    path("account/password/", account.password, name="password"),
    path("account/app/", account.app, name="app"),
    path("account/app/remove/", account.remove_app, name="remove_app"),
    path("account/codes/", account.codes, name="codes"),
    path("account/passkeys/", account.passkey_options, name="new_passkey_options"),
    path("account/passkeys/done/", account.add_passkey, name="new_passkey"),
    path("account/passkeys/<int:pk>/remove/", account.remove_passkey, name="remove_passkey"),
    path("account/sessions/end/", account.end_others, name="end_others"),
    path("account/sessions/<int:pk>/end/", account.end_one, name="end_one"),
]
