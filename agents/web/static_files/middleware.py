"""Serves static files and bundles compressed; browsers cache them without asking again."""

import asyncio
import gzip
import re
from pathlib import PurePosixPath

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from servestatic.middleware import ServeStaticMiddleware

from . import bundles
from .version import FOREVER

# Of this version, of another one, or of none.
PATH = re.compile(r"^/static/(?:[0-9a-f]{12}/)?(.+)$")


class StaticFilesMiddleware(ServeStaticMiddleware):  # type: ignore[misc]  # it has no types
    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        match = PATH.match(request.path_info)
        if match is None or settings.DEBUG or request.method not in ("GET", "HEAD"):
            return await super().__call__(request)
        name = match[1]
        url = f"{self.static_prefix}{name}"
        is_current = url == request.path_info
        bundle = bundles.find_bundle(name, request.GET)
        # A page of another version can name files that this one doesn't have.
        if bundle and all(f"{self.static_prefix}{file}" in self.files for file in bundle.files):
            content = await asyncio.to_thread(bundles.compress_bundle, bundle)
            cache_control = FOREVER if is_current else "no-cache"
            return compressed_response(
                request, content, bundle.kind.content_type, cache_control
            )
        if url not in self.files:
            return await super().__call__(request)
        # A tab that was opened before an update still loads what it needs.
        if not is_current:
            return HttpResponseRedirect(url)
        content_type = bundles.COMPRESSED_TYPES.get(PurePosixPath(name).suffix)
        if content_type is None:
            return await super().__call__(request)
        if not reads_gzip(request):
            response = await super().__call__(request)
            response.headers["Vary"] = "Accept-Encoding"
            return response
        content = await asyncio.to_thread(bundles.compress_file, name)
        return compressed_response(request, content, content_type, FOREVER)


def reads_gzip(request: HttpRequest) -> bool:
    return "gzip" in request.headers.get("Accept-Encoding", "")


def compressed_response(
    request: HttpRequest, content: bytes, content_type: str, cache_control: str
) -> HttpResponse:
    """Return gzipped content, unpacked for clients that can't read it."""
    headers = {"Cache-Control": cache_control, "Vary": "Accept-Encoding"}
    if reads_gzip(request):
        headers["Content-Encoding"] = "gzip"
    else:
        content = gzip.decompress(content)
    headers["Content-Length"] = str(len(content))
    return HttpResponse(content, content_type=content_type, headers=headers)
