"""Signing in to MCP servers: the button, the page that comes back, and signing out."""

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
    JsonResponse,
)
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_GET, require_POST

from agents.access import audit
from agents.access.requests import UserRequest
from agents.catalog.mcp_servers import sign_in_flow, sign_ins
from agents.catalog.mcp_servers import sign_out as sign_outs
from agents.db.sentences import translate
from agents.models import McpServer, McpSignIn
from agents.tools.mcp.sign_in import SignInFailed

from . import branding
from .referrer import previous_page

MAX_NEXT_CHARS = 300


@never_cache
@require_GET
def sign_in(request: UserRequest, pk: int) -> HttpResponse:
    """Send the user to the page where they sign in to a server."""
    server = _server(request, pk)
    next_url = _next_url(request)
    redirect_uri = request.build_absolute_uri(reverse("runs:mcp_callback"))
    try:
        url = sign_in_flow.start(server, request.user, redirect_uri, next_url)
    except SignInFailed as error:
        return _render_problem(request, server, str(error), next_url)
    return HttpResponseRedirect(url)


@never_cache
@require_GET
@sensitive_variables()
def callback(request: UserRequest) -> HttpResponse:
    """Finish the sign-in that the user comes back from."""
    try:
        attempt = sign_in_flow.finish(request.user, request.GET.dict())
    except SignInFailed as error:
        return _render_problem(request, None, str(error), "")
    server = attempt.server
    if attempt.error:
        return _render_problem(request, server, attempt.error, attempt.next_url)
    is_shared = sign_ins.owner(server, request.user) is None
    audit.record(
        request.user, audit.SERVER_SIGNED_IN, server, name=server.name, is_shared=is_shared
    )
    title = _("You’re signed in to %(name)s.") % {"name": server.name}
    if attempt.next_url:
        messages.success(request, title)
        return redirect(attempt.next_url)
    context = {"title": title, "account_url": reverse("people:account")}
    return render(request, "mcp/sign_in.html", context)


@login_not_required
@never_cache
@require_GET
def client_metadata(request: HttpRequest) -> JsonResponse:
    """Return our client metadata document, whose URL is our client ID at MCP servers."""
    return JsonResponse(
        {
            "client_id": request.build_absolute_uri(request.path),
            "client_name": branding.current().name,
            "client_uri": request.build_absolute_uri("/"),
            "redirect_uris": [request.build_absolute_uri(reverse("runs:mcp_callback"))],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "web",
        }
    )


@require_POST
def sign_out(request: UserRequest, pk: int) -> HttpResponse:
    """Delete the user's sign-in, or everyone's, and revoke its tokens."""
    server = get_object_or_404(McpServer, pk=pk)
    rows = McpSignIn.objects.filter(server=server, user=request.user)
    if "shared" in request.POST:
        _require_administrator(request)
        rows = McpSignIn.objects.filter(server=server, user=None)
    if not rows.exists():
        raise Http404
    sign_outs.end(rows)
    audit.record(request.user, audit.SERVER_SIGNED_OUT, server, name=server.name)
    messages.success(request, _("You’re signed out of %(name)s.") % {"name": server.name})
    return redirect(previous_page(request) or "people:account")


def _server(request: UserRequest, pk: int) -> McpServer:
    """Return a server that this user can sign in to."""
    server = get_object_or_404(McpServer.objects.exclude(sign_in=""), pk=pk)
    if server.sign_in == McpServer.SignIn.SHARED:
        _require_administrator(request)
    elif not server.enabled:
        raise Http404
    return server


def _require_administrator(request: HttpRequest) -> None:
    if not request.user.has_perm("agents.change_mcpserver"):
        raise Http404


def _next_url(request: HttpRequest) -> str:
    """Return the page to go on to, if it is one of ours."""
    url = request.GET.get("next", "")[:MAX_NEXT_CHARS]
    return url if url_has_allowed_host_and_scheme(url, allowed_hosts=None) else ""


def _render_problem(
    request: HttpRequest, server: McpServer | None, problem: str, next_url: str
) -> HttpResponse:
    name = {"name": server.name if server else ""}
    title = _("You couldn’t be signed in to %(name)s.") % name
    context = {
        "title": title if server else _("You couldn’t be signed in."),
        "server": server,
        "problem": translate(problem),
        "next_url": next_url,
        "account_url": reverse("people:account"),
    }
    return render(request, "mcp/sign_in.html", context, status=400)
