"""The OAuth server's pages and endpoints. Imported by its first request: few need Authlib."""

from collections.abc import Callable, Iterable
from functools import wraps
from urllib.parse import urlsplit

from authlib.oauth2 import OAuth2Error
from authlib.oauth2.rfc6749 import InvalidClientError, InvalidRequestError
from authlib.oauth2.rfc6749.util import extract_basic_authorization
from authlib.oauth2.rfc8628 import DeviceAuthorizationEndpoint
from django.core.exceptions import SuspiciousOperation
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods

from agents.access import audit
from agents.access.audit import request_context
from agents.access.requests import UserRequest
from agents.accounts.oauth_server import documents, grants, metadata
from agents.accounts.oauth_server.server import Registration, Revocation, Server
from agents.accounts.oauth_server.user_codes import user_code_digest
from agents.db.installation import configured
from agents.models import ApiKey, DeviceCode, OAuthApp
from agents.web import request_rate
from agents.web.api_errors import MCP_PATH
from agents.web.origin import origin_of

View = Callable[..., HttpResponse]

# Per minute: of programs by their network, of users by their account.
MAX_CALLS = 600
MAX_REGISTRATIONS = 20
MAX_FETCHES = 10
MAX_USER_CODES = 10
MAX_PARAMETER_CHARS = 4_000
FORM_TYPE = "application/x-www-form-urlencoded"
CORS_HEADERS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET, POST, OPTIONS",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, MCP-Protocol-Version",
    "Access-Control-Expose-Headers": "WWW-Authenticate, Retry-After",
    "Access-Control-Max-Age": "86400",
}

PERMISSIONS = {
    ApiKey.Scope.ASK: gettext_lazy("Ask agents as you. This counts toward your usage limits."),
    ApiKey.Scope.READ: gettext_lazy("Read your chats and runs, and those shared with you."),
    ApiKey.Scope.READ_ALL: gettext_lazy("Read all runs that you can review."),
    ApiKey.Scope.APPROVE: gettext_lazy("Approve and reject tool calls and plans for you."),
    ApiKey.Scope.CONFIGURE: gettext_lazy(
        "Change the agents, documents and examples that you can change."
    ),
}
UNKNOWN_APP = gettext_lazy(
    "This app isn’t known here. Remove this installation in the app, then connect it again."
)
BLOCKED_APP = gettext_lazy("An administrator blocked this app.")
UNUSABLE_DOCUMENT = gettext_lazy(
    "The app’s description couldn’t be read from its client ID. Try again later."
)
TOO_OFTEN = gettext_lazy("Too many attempts. Wait a minute, then try again.")
NOTHING_USABLE = gettext_lazy("Your account has none of the permissions that this app needs.")
WRONG_CODE = gettext_lazy("This code is wrong or has expired. Check it on your device.")


def for_programs(method: str, *, max_calls: int = MAX_CALLS) -> Callable[[View], View]:
    """Answer programs and scripts of any website, in JSON: no cookie counts here."""

    def decorate(view: View) -> View:
        @wraps(view)
        @sensitive_variables()
        def wrapper(request: HttpRequest, *args: str) -> HttpResponse:
            response: HttpResponse
            network = request_context.mask_address(request_context.client_address(request))
            if request.method == "OPTIONS":
                response = HttpResponse(status=204)
            elif request.method != method:
                response = _error("invalid_request", f"Use {method}.", 405)
                response["Allow"] = f"{method}, OPTIONS"
            elif request_rate.is_exceeded(view.__name__, network, max_calls):
                response = _error("temporarily_unavailable", "Too many requests.", 429)
                response["Retry-After"] = "60"
            else:
                try:
                    response = view(request, *args)
                except OAuth2Error as error:
                    response = Server(request).handle_error_response(request, error)
                except SuspiciousOperation:  # such as too many fields
                    response = _error("invalid_request", "The request can't be read.", 400)
            for name, value in CORS_HEADERS.items():
                response[name] = value
            return response

        return wrapper

    return decorate


def _error(code: str, description: str, status: int) -> JsonResponse:
    return JsonResponse({"error": code, "error_description": description}, status=status)


@for_programs("GET")
def server_metadata(request: HttpRequest) -> HttpResponse:
    return JsonResponse(metadata.authorization_server(origin_of(request)))


@for_programs("GET")
def api_metadata(request: HttpRequest) -> HttpResponse:
    return JsonResponse(metadata.protected_resource(origin_of(request)))


@for_programs("GET")
def mcp_metadata(request: HttpRequest) -> HttpResponse:
    return JsonResponse(metadata.protected_resource(origin_of(request), MCP_PATH))


@for_programs("POST")
def token(request: HttpRequest) -> HttpResponse:
    """Exchange a code or a refresh token for a key."""
    _check_form(request)
    metadata.check_resources(request.POST.getlist("resource"))
    with transaction.atomic():
        response: HttpResponse = Server(request).create_token_response(request)
        return response


@for_programs("POST")
def revoke(request: HttpRequest) -> HttpResponse:
    _check_form(request)
    with transaction.atomic():
        return Server(request).create_endpoint_response(Revocation.ENDPOINT_NAME, request)


@for_programs("POST", max_calls=MAX_REGISTRATIONS)
def register(request: HttpRequest) -> HttpResponse:
    with transaction.atomic():
        return Server(request).create_endpoint_response(Registration.ENDPOINT_NAME, request)


@for_programs("POST", max_calls=MAX_REGISTRATIONS)
def device_authorization(request: HttpRequest) -> HttpResponse:
    """Begin the sign-in of a device, such as the command line."""
    _check_form(request)
    name = DeviceAuthorizationEndpoint.ENDPOINT_NAME
    return Server(request).create_endpoint_response(name, request)


def _check_form(request: HttpRequest) -> None:
    """Check what Authlib takes for granted; raise OAuth2Error."""
    if request.content_type != FORM_TYPE:
        raise InvalidRequestError(f"Send a form: Content-Type {FORM_TYPE}.")
    if request.GET:
        raise InvalidRequestError("Parameters belong in the body.")
    _check_parameters(request.POST.lists())
    try:
        name, _secret = extract_basic_authorization(request.headers)
    except UnicodeDecodeError:
        name = "\0"
    if name and not (name.isascii() and name.isprintable()):
        raise InvalidClientError(status_code=401)


def _check_parameters(parameters: Iterable[tuple[str, list[str]]]) -> None:
    for name, values in parameters:
        text = name + "".join(values)
        if len(values) > 1 and name != "resource":
            raise InvalidRequestError("A parameter is repeated.")
        if len(text) > MAX_PARAMETER_CHARS or not (text.isascii() and text.isprintable()):
            raise InvalidRequestError("A parameter has invalid characters or is too long.")


@never_cache
@require_http_methods(["GET", "POST"])
def authorize(request: UserRequest) -> HttpResponse:
    """Ask the user whether an app may act for them."""
    server = Server(request)
    try:
        _check_parameters(request.GET.lists())
        _check_describable(request)
        if problem := _prepare(request, request.GET.get("client_id", "")):
            return _render_problem(request, problem)
        grant = server.get_consent_grant(request, end_user=request.user)
    except OAuth2Error as error:
        return _render_refusal(request, server, error)
    app: OAuthApp = grant.client.app
    redirect_uri: str = grant.redirect_uri
    scopes = grants.usable_scopes(request.user, grant.request.scope.split())
    if not scopes:
        return _render_problem(request, NOTHING_USABLE)
    if request.method == "POST":
        is_allowed = request.POST.get("decision") == "allow"
    elif _needs_no_question(request, app, redirect_uri, scopes):
        is_allowed = True
    else:
        return _render_consent(request, app, scopes, redirect_uri=redirect_uri)
    with transaction.atomic():
        response = server.create_authorization_response(
            request, grant_user=request.user if is_allowed else None, grant=grant
        )
        if is_allowed and request.method == "POST":
            audit.record(request.user, audit.APP_ALLOWED, app, name=app.name, scopes=scopes)
    if "Location" not in response:  # the app was deleted a moment ago
        return _render_problem(request, UNKNOWN_APP)
    # A page that leads on, because a form's CSP forbids a redirect to another site.
    context = {"url": response["Location"], "app": app, "is_allowed": is_allowed}
    return render(request, "people/oauth_leaving.html", context)


def _prepare(request: UserRequest, client_id: str) -> object:
    """Read what an app says about itself at its client ID; return a problem for the user."""
    app = OAuthApp.objects.filter(client_id=client_id).first()
    if app is not None and app.blocked_at is not None:
        return BLOCKED_APP
    if not documents.is_document_url(client_id):
        return ""
    if app is None and not configured.APP_REGISTRATION.value:
        return UNKNOWN_APP
    if request_rate.is_exceeded("app document", request.user.pk, MAX_FETCHES):
        return TOO_OFTEN
    try:
        documents.refresh(client_id)
    except documents.UnusableDocument:
        return UNUSABLE_DOCUMENT
    return ""


def _check_describable(request: HttpRequest) -> None:
    """Check what Authlib quotes in an error: some characters can't be in one."""
    if {'"', "\\"} & {
        *request.GET.get("redirect_uri", ""),
        *request.GET.get("response_type", ""),
    }:
        raise InvalidRequestError("A parameter has invalid characters or is too long.")


def _needs_no_question(
    request: UserRequest, app: OAuthApp, redirect_uri: str, scopes: list[str]
) -> bool:
    """Whether the user has allowed this before.

    Only for https: who answers elsewhere on a device may be another program (RFC 8252).
    """
    return (
        redirect_uri.startswith("https://")
        and "consent" not in request.GET.get("prompt", "").split()
        and grants.is_granted(request.user, app, scopes)
    )


@never_cache
@require_http_methods(["GET", "POST"])
def device(request: UserRequest) -> HttpResponse:
    """Let the user enter the code of a device, and ask whether it may act for them."""
    values = request.POST if request.method == "POST" else request.GET
    typed = values.get("user_code", "")[:40]
    if not typed:
        return render(request, "people/oauth_device.html")
    if request_rate.is_exceeded("device code", request.user.pk, MAX_USER_CODES):
        return _render_device(request, typed, TOO_OFTEN, 429)
    code = _waiting_device(typed)
    if code is None:
        return _render_device(request, typed, WRONG_CODE, 400)
    scopes = grants.usable_scopes(request.user, code.scopes)
    if not scopes:
        return _render_problem(request, NOTHING_USABLE)
    decision = request.POST.get("decision")
    if not decision:
        return _render_consent(request, code.app, scopes, user_code=typed.upper())
    is_allowed = decision == "allow"
    with transaction.atomic():
        waiting = DeviceCode.objects.filter(pk=code.pk, is_allowed=None)
        if not waiting.update(user=request.user, is_allowed=is_allowed, scopes=scopes):
            return _render_device(request, typed, WRONG_CODE, 400)
        if is_allowed:
            name = code.app.name
            audit.record(request.user, audit.APP_ALLOWED, code.app, name=name, scopes=scopes)
    context = {"app": code.app, "is_allowed": is_allowed, "is_done": True}
    return render(request, "people/oauth_device.html", context)


def _waiting_device(typed: str) -> DeviceCode | None:
    codes = DeviceCode.objects.filter(is_allowed=None, app__blocked_at=None)
    code = codes.filter(user_code_digest=user_code_digest(typed)).select_related("app").first()
    return None if code is None or code.is_expired else code


def _render_device(
    request: HttpRequest, typed: str, problem: object, status: int
) -> HttpResponse:
    context = {"typed": typed, "problem": problem}
    return render(request, "people/oauth_device.html", context, status=status)


def _render_consent(
    request: UserRequest,
    app: OAuthApp,
    scopes: list[str],
    *,
    redirect_uri: str = "",
    user_code: str = "",
) -> HttpResponse:
    parts = urlsplit(redirect_uri)
    is_document = app.source == OAuthApp.Source.DOCUMENT
    context = {
        "app": app,
        # Who has published what the app says about itself.
        "publisher": urlsplit(app.client_id).hostname if is_document else "",
        "host": parts.hostname if parts.scheme == "https" else "",
        "scheme": parts.scheme if parts.scheme not in {"", "http", "https"} else "",
        "permissions": [PERMISSIONS[ApiKey.Scope(scope)] for scope in scopes],
        "user_code": user_code,
    }
    return render(request, "people/oauth_consent.html", context)


def _render_refusal(request: HttpRequest, server: Server, error: OAuth2Error) -> HttpResponse:
    """Say what is wrong, with a link back: a redirect would lead anywhere unasked."""
    if isinstance(error, InvalidClientError):
        return _render_problem(request, UNKNOWN_APP)
    detail = f"{error.error}: {error.get_error_description()}".rstrip(". ")
    problem = _("The app’s request is invalid (%(detail)s).") % {"detail": detail}
    refusal = server.handle_error_response(request, error)
    return _render_problem(request, problem, refusal.headers.get("Location", ""))


def _render_problem(request: HttpRequest, problem: object, back_url: str = "") -> HttpResponse:
    context = {
        "problem": problem,
        "back_url": back_url,
        "back_host": urlsplit(back_url).hostname or "",
    }
    return render(request, "people/oauth_problem.html", context, status=400)
