"""The security schemes of an API."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..http.binding import HEADER_NAME
from .schema import References, UnresolvedReference, shorten

SchemeKind = Literal["header", "query", "cookie", "bearer", "basic", "token"]
API_KEY_LOCATIONS = ("header", "query", "cookie")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityScheme:
    """How a secret is sent. `token` is one that was obtained elsewhere, by OAuth or OpenID."""

    key: str
    kind: SchemeKind
    name: str = ""
    description: str = ""


def read_schemes(data: Mapping[str, Any], references: References) -> Iterator[SecurityScheme]:
    components = data.get("components")
    definitions = data.get("securityDefinitions")
    if isinstance(components, Mapping):
        definitions = components.get("securitySchemes")
    for key, value in (definitions if isinstance(definitions, Mapping) else {}).items():
        try:
            definition = references.resolve(value)
        except UnresolvedReference:
            continue
        if not isinstance(definition, Mapping):
            continue
        note = shorten(definition.get("description"))
        name = str(definition.get("name", ""))
        location = definition.get("in")
        http_scheme = str(definition.get("scheme")).lower()
        match definition.get("type"):
            case "apiKey" if HEADER_NAME.fullmatch(name) and location in API_KEY_LOCATIONS:
                yield SecurityScheme(key=str(key), kind=location, name=name, description=note)
            case "basic":
                yield SecurityScheme(key=str(key), kind="basic", description=note)
            case "http":
                kind: SchemeKind = "basic" if http_scheme == "basic" else "bearer"
                yield SecurityScheme(key=str(key), kind=kind, description=note)
            case "oauth2" | "openIdConnect":
                yield SecurityScheme(key=str(key), kind="token", description=note)
