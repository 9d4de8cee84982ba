"""The security schemes of an API."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..http.binding import HEADER_NAME
from .schema import References, UnresolvedReference, shorten

SchemeKind = Literal["header", "query", "cookie", "bearer", "basic", "token"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityScheme:
    """How a secret is sent. `token` is one that was obtained elsewhere, by OAuth or OpenID."""

    key: str
    kind: SchemeKind
    name: str = ""
    description: str = ""


def read_schemes(data: Mapping[str, Any], references: References) -> Iterator[SecurityScheme]:
    components = data.get("components")
    given = data.get("securityDefinitions")
    if isinstance(components, Mapping):
        given = components.get("securitySchemes")
    for key, value in (given if isinstance(given, Mapping) else {}).items():
        try:
            about = references.resolve(value)
        except UnresolvedReference:
            continue
        if isinstance(about, Mapping) and (scheme := _scheme(str(key), about)):
            yield scheme


def _scheme(key: str, about: Mapping[str, Any]) -> SecurityScheme | None:
    kind, name = about.get("type"), str(about.get("name", ""))
    note = shorten(about.get("description"))
    if kind == "apiKey" and HEADER_NAME.fullmatch(name):
        places: dict[str, SchemeKind] = {
            "header": "header",
            "query": "query",
            "cookie": "cookie",
        }
        where = places.get(str(about.get("in")))
        return (
            SecurityScheme(key=key, kind=where, name=name, description=note) if where else None
        )
    if kind == "basic" or (kind == "http" and str(about.get("scheme")).lower() == "basic"):
        return SecurityScheme(key=key, kind="basic", description=note)
    if kind == "http":
        return SecurityScheme(key=key, kind="bearer", description=note)
    if kind in ("oauth2", "openIdConnect"):
        return SecurityScheme(key=key, kind="token", description=note)
    return None
