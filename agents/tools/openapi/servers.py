"""The URLs of an API."""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any
from urllib.parse import urljoin, urlsplit

from .values import list_or_empty

VARIABLE = re.compile(r"\{([^{}]+)\}")


def read_servers(data: Mapping[str, Any], url: str) -> Iterator[str]:
    if "swagger" in data:
        host = data.get("host") or urlsplit(url).netloc
        base = data.get("basePath") or ""
        schemes = [s for s in list_or_empty(data.get("schemes")) if s in ("http", "https")]
        schemes = schemes or [urlsplit(url).scheme or "https"]
        for scheme in sorted(schemes, reverse=True):  # https first
            if host:
                yield f"{scheme}://{host}{base}".rstrip("/")
        return
    listed = list(server_urls(data.get("servers"), url))
    # Without servers, OpenAPI means the root of the document's own host.
    yield from listed or ([urljoin(url, "/").rstrip("/")] if url else [])


def server_urls(servers: Any, url: str) -> Iterator[str]:
    """Yield absolute URLs, with the defaults of their variables."""
    for server in list_or_empty(servers):
        server_url = server.get("url") if isinstance(server, Mapping) else None
        if not isinstance(server_url, str):
            continue
        variables = server.get("variables")
        if isinstance(variables, Mapping):
            server_url = VARIABLE.sub(partial(_default, variables), server_url)
        try:
            absolute = urljoin(url, server_url) if url else server_url
            if urlsplit(absolute).scheme in {"http", "https"} and urlsplit(absolute).netloc:
                yield absolute.rstrip("/")
        except ValueError:
            continue


def _default(variables: Mapping[str, Any], match: re.Match[str]) -> str:
    variable = variables.get(match[1])
    return str(variable.get("default", "")) if isinstance(variable, Mapping) else match[0]
