"""What other sites load: the script, and the frame of an embedded chat.

Neither depends on who is signed in here: what visitors see is up to what their frame proves
over its socket.
"""

import re
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import translation
from django.utils.http import quote_etag
from django.utils.translation import gettext as _
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.http import condition, require_safe

from agents.models import Embed
from agents.web import branding
from agents.web.origin import origin_of
from agents.web.static_files import bundles
from agents.web.static_files.middleware import compressed_response

from . import visitors
from .visitors import MAX_MESSAGE_CHARS

SCRIPT = "js/embed.js"
# Sites keep it for an hour, and then ask whether it has changed.
SCRIPT_CACHE = "public, max-age=3600, stale-while-revalidate=86400"
SELF = "'self'"
MAX_CHAR_BYTES = 4
SITE = re.compile(r"https?://[\w.:\[\]-]{1,255}", re.ASCII)


def _script_etag(request: HttpRequest) -> str:
    return quote_etag(settings.STATIC_URL)  # it has the version of all files


@login_not_required
@require_safe
@condition(etag_func=_script_etag)
def script(request: HttpRequest) -> HttpResponse:
    """Return the script that puts a chat into a page; any site may load it."""
    content = bundles.compress_file(SCRIPT)
    response = compressed_response(request, content, bundles.JAVASCRIPT, SCRIPT_CACHE)
    response["Cross-Origin-Resource-Policy"] = "cross-origin"
    return response


@login_not_required
@require_safe
@xframe_options_exempt
def frame(request: HttpRequest, public_id: str) -> HttpResponse:
    """Return the page of an embedded chat, which only its allowed sites can frame."""
    embed = visitors.find_embed(public_id)
    with translation.override(_language(request, embed)):
        host = request.GET.get("host", "") or _origin(request.headers.get("Referer", ""))
        if embed is None:
            response = _unavailable(request, _("This chat isn’t available."), 404)
        elif host and host not in [*embed.allowed_origins, *settings.ORIGINS]:
            sentence = _("This chat isn’t set up for %(site)s. Its administrator can add it.")
            site = host if SITE.fullmatch(host) else _("this site")  # no text of others
            response = _unavailable(request, sentence % {"site": site}, 403)
        else:
            response = _frame(request, embed)
        response["Content-Language"] = translation.get_language() or ""
    response["Referrer-Policy"] = "no-referrer"
    response["X-Robots-Tag"] = "noindex, nofollow"
    return response


def _frame(request: HttpRequest, embed: Embed) -> HttpResponse:
    origins = embed.allowed_origins
    if _is_preview(request):
        origins = [*origins, origin_of(request)]
    host = request.GET.get("host", "")
    context = {
        "embed": embed,
        "title": embed.title or branding.current().name,
        "greeting": embed.greeting or _("How can I help?"),
        "theme": _theme(request, embed),
        "host": host if host in origins else "",
        "origins": " ".join(origins),
        "is_over": "over" in request.GET,
        "socket_url": f"/ws/embed/{embed.public_id}/",
        "max_chars": MAX_MESSAGE_CHARS,
        "max_bytes": MAX_MESSAGE_CHARS * MAX_CHAR_BYTES,
    }
    response = render(request, "embed/frame.html", context)
    _allow_framing(response, origins)
    return response


def _unavailable(request: HttpRequest, sentence: str, status: int) -> HttpResponse:
    """Say why there is no chat; the page has nothing but this sentence, so any site can."""
    context = {"sentence": sentence, "theme": _theme(request, None)}
    response = render(request, "embed/unavailable.html", context, status=status)
    _allow_framing(response, ["*"])
    return response


def _allow_framing(response: HttpResponse, ancestors: list[str]) -> None:
    response._csp_replace = {"frame-ancestors": ancestors}  # type: ignore[attr-defined]


def _is_preview(request: HttpRequest) -> bool:
    """Whether it is framed by our own console."""
    return "preview" in request.GET and request.user.has_perm("agents.view_embed")


def _theme(request: HttpRequest, embed: Embed | None) -> str:
    if embed is not None and embed.theme != Embed.Theme.AUTO:
        return embed.theme
    wanted = request.GET.get("theme", "")
    return wanted if wanted in {Embed.Theme.LIGHT, Embed.Theme.DARK} else Embed.Theme.AUTO


def _language(request: HttpRequest, embed: Embed | None) -> str:
    if embed is not None and embed.language != Embed.Language.AUTO:
        return embed.language
    wanted = request.GET.get("language", "")
    return wanted if wanted in dict(settings.LANGUAGES) else translation.get_language()


def _origin(url: str) -> str:
    """Return the origin of an address, or an empty text if it has none."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme and parts.netloc else ""
