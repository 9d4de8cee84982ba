"""The URLs of an API."""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

from .values import list_or_empty

VARIABLE = re.compile(r"\{([^{}]+)\}")


def read_servers(data: Mapping[str, Any], url: str) -> Iterator[str]:
    if "swagger" in data:
        host, base = data.get("host") or urlsplit(url).netloc, data.get("basePath") or ""
        schemes = [s for s in list_or_empty(data.get("schemes")) if s in ("http", "https")]
        schemes = schemes or [urlsplit(url).scheme or "https"]
        for scheme in sorted(schemes, reverse=True):  # https first
            if host:
                yield f"{scheme}://{host}{base}".rstrip("/")
        return
    found = list(server_urls(data.get("servers"), url))
    # Without servers, OpenAPI means the root of the document's own host.
    yield from found or ([urljoin(url, "/").rstrip("/")] if url else [])


def server_urls(servers: Any, url: str) -> Iterator[str]:
    """Yield absolute URLs, with the defaults of their variables."""
    for server in list_or_empty(servers):
        written = server.get("url") if isinstance(server, Mapping) else None
        if not isinstance(written, str):
            continue
        variables = server.get("variables")
        filled = _fill_variables(written, variables if isinstance(variables, Mapping) else {})
        try:
            whole = urljoin(url, filled) if url else filled
            if urlsplit(whole).scheme in {"http", "https"} and urlsplit(whole).netloc:
                yield whole.rstrip("/")
        except ValueError:
            continue


def _fill_variables(url: str, variables: Mapping[str, Any]) -> str:
    def fill(found: re.Match[str]) -> str:
        about = variables.get(found[1])
        return str(about.get("default", "")) if isinstance(about, Mapping) else found[0]

    return VARIABLE.sub(fill, url)
