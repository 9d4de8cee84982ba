"""Addresses of sign-in, invitations, and the pages of a user's own account."""

from collections.abc import Callable
from importlib import import_module

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.generic import RedirectView

from .views import (
    account,
    api_keys,
    connected_apps,
    invitation,
    learning,
    memory,
    personalization,
    profile,
    recently_deleted,
    sign_in,
    usage,
)

app_name = "people"


def lazy_oidc_view(name: str) -> Callable[[HttpRequest], HttpResponse]:
    """Import the view on first use, because few need it and it slows down every start."""

    def view(request: HttpRequest) -> HttpResponse:
        return getattr(import_module("agents.accounts.views.oidc"), name)(request)

    return login_not_required(view)


def lazy_oauth_view(name: str) -> Callable[[HttpRequest], HttpResponse]:
    """Do the same for the OAuth server."""

    def view(request: HttpRequest) -> HttpResponse:
        return getattr(import_module("agents.accounts.views.oauth"), name)(request)

    return view


def lazy_oauth_endpoint(name: str) -> Callable[[HttpRequest], HttpResponse]:
    """Return what programs call, and scripts of any website: no cookie counts there."""
    return login_not_required(csrf_exempt(lazy_oauth_view(name)))


urlpatterns = [
    path(
        ".well-known/oauth-authorization-server",
        lazy_oauth_endpoint("server_metadata"),
        name="oauth_server_metadata",
    ),
    path(
        ".well-known/oauth-protected-resource",
        lazy_oauth_endpoint("api_metadata"),
        name="oauth_api_metadata",
    ),
    path(
        ".well-known/oauth-protected-resource/mcp",
        lazy_oauth_endpoint("mcp_metadata"),
        name="oauth_mcp_metadata",
    ),
    path("oauth/authorize", lazy_oauth_view("authorize"), name="oauth_authorize"),
    path("oauth/token", lazy_oauth_endpoint("token"), name="oauth_token"),
    path("oauth/revoke", lazy_oauth_endpoint("revoke"), name="oauth_revoke"),
    path("oauth/register", lazy_oauth_endpoint("register"), name="oauth_register"),
    path("oauth/device", lazy_oauth_view("device"), name="oauth_device"),
    path(
        "oauth/device_authorization",
        lazy_oauth_endpoint("device_authorization"),
        name="oauth_device_authorization",
    ),
    path("login/second/", login_not_required(sign_in.second_factor), name="second"),
    path("login/app/", login_not_required(sign_in.set_up_mfa), name="set_up"),
    path(
        "login/passkey/",
        login_not_required(sign_in.passkey_options),
        name="passkey_options",
    ),
    path(
        "login/passkey/done/", login_not_required(sign_in.sign_in_with_passkey), name="passkey"
    ),
    path("login/oidc/", lazy_oidc_view("begin"), name="oidc"),
    path("login/oidc/back/", lazy_oidc_view("back"), name="oidc_back"),
    path(
        "login/oidc/signed-out/",
        login_not_required(sign_in.signed_out),
        name="oidc_signed_out",
    ),
    path("welcome/<str:uid>/<str:token>/", login_not_required(sign_in.welcome), name="welcome"),
    path("invite/<str:token>/", login_not_required(invitation.accept), name="invitation"),
    path(
        "invite/<str:token>/sso/",
        login_not_required(invitation.accept_with_sso),
        name="invitation_sso",
    ),
    path("account/profile/", profile.profile_page, name="profile"),
    path("account/setup-guide/", profile.switch_setup_guide, name="setup_guide"),
    path(
        "account/personalization/", personalization.personalization_page, name="personalization"
    ),
    path("account/personalization/clear/", personalization.clear, name="clear_memory"),
    path("account/personalization/forget/", personalization.forget_style, name="forget_style"),
    path("account/memory/", memory.add, name="memory"),
    path("account/memory/export/", memory.export, name="export_memory"),
    path("account/memory/<int:pk>/", memory.edit, name="edit_memory"),
    path("account/memory/<int:pk>/accept/", memory.accept, name="accept_memory"),
    path("account/memory/<int:pk>/delete/", memory.delete, name="delete_memory"),
    path("account/memory/<int:pk>/undo/", memory.undo, name="undo_memory"),
    path("account/memory/<int:pk>/restore/", memory.restore, name="restore_memory"),
    path(
        "account/learning/",
        RedirectView.as_view(pattern_name="people:personalization"),
        name="learning",
    ),
    path("account/learning/<int:pk>/", learning.edit, name="edit_experience"),
    path("account/learning/<int:pk>/use/", learning.use, name="use_experience"),
    path("account/learning/<int:pk>/suggest/", learning.suggest, name="suggest_experience"),
    path("account/learning/<int:pk>/delete/", learning.delete, name="delete_experience"),
    path("account/recently-deleted/", recently_deleted.deleted_page, name="recently_deleted"),
    path("account/recently-deleted/restore/", recently_deleted.restore, name="restore_deleted"),
    path("account/recently-deleted/erase/", recently_deleted.erase, name="erase_deleted"),
    path("account/usage/", usage.usage_page, name="usage"),
    path("account/", account.account_page, name="account"),
    path("account/confirm/", account.confirm, name="confirm"),
    path("account/confirm/passkey/", account.confirm_options, name="confirm_options"),
    path("account/confirm/passkey/done/", account.confirm_passkey, name="confirm_passkey"),
    path("account/api-keys/", api_keys.keys_page, name="api_keys"),
    path("account/api-keys/new/", api_keys.new_key, name="new_api_key"),
    path("account/api-keys/<int:pk>/revoke/", api_keys.revoke_key, name="revoke_api_key"),
    path(
        "account/apps/<int:pk>/disconnect/",
        connected_apps.disconnect,
        name="disconnect_app",
    ),
    path("account/password/", account.change_password, name="password"),
    path("account/app/", account.set_up_authenticator, name="app"),
    path("account/app/remove/", account.remove_authenticator, name="remove_app"),
    path("account/codes/", account.renew_recovery_codes, name="codes"),
    path("account/passkeys/", account.passkey_options, name="new_passkey_options"),
    path("account/passkeys/done/", account.add_passkey, name="new_passkey"),
    path("account/passkeys/<int:pk>/remove/", account.remove_passkey, name="remove_passkey"),
    path("account/sessions/end/", account.end_other_sessions, name="end_others"),
    path("account/sessions/<int:pk>/end/", account.end_session, name="end_one"),
]
