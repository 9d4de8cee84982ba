"""Reads an OpenAPI document into operations that can become HTTP tools.

OpenAPI 3.0 and 3.1 and Swagger 2.0, as JSON or YAML. An operation that can't become a tool has
a reason, and doesn't stop the others.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urljoin, urlsplit

from agents.engine.plans import read_yaml

from . import foreign_json
from .http import METHODS
from .http_binding import HEADER_NAME, RESERVED_HEADERS
from .openapi_schema import (
    References,
    SchemaConverter,
    TooComplex,
    UnresolvedReference,
    shorten,
)

MAX_DOCUMENT_BYTES = 5_000_000
MAX_OPERATIONS = 1_000
MAX_PARAMETERS = 200
MAX_SCHEMA_CHARS = 20_000
SCHEMA_DEPTHS = (8, 4, 3, 2)
MAX_NAME_CHARS = 64
MAX_SUMMARY_CHARS = 200
MAX_TOOL_DESCRIPTION_CHARS = 1_000

HTTP_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
PATH_PARAMETER = re.compile(r"\{([^{}/]+)\}")
VARIABLE = re.compile(r"\{([^{}]+)\}")
JSON_TYPE = re.compile(r"application/(?:[\w.+-]+\+)?json(?:\s*;.*)?|\*/\*", re.IGNORECASE)
COLLECTION_STYLES = {
    "csv": ("form", False),
    "multi": ("form", True),
    "ssv": ("spaceDelimited", False),
    "pipes": ("pipeDelimited", False),
}
QUERY_STYLES = {"form", "spaceDelimited", "pipeDelimited", "deepObject"}
# OpenAPI says that these are ignored as parameters: other fields describe them.
IGNORED_HEADERS = {"accept", "content-type", "authorization"}

SchemeKind = Literal["header", "query", "cookie", "bearer", "basic", "token"]


class BadDocument(ValueError):
    """This isn't an OpenAPI document that can be read."""


class _Unsupported(Exception):
    """Raised when an operation can't become a tool; the message is the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityScheme:
    """How a secret is sent. `token` is one that was obtained elsewhere, by OAuth or OpenID."""

    key: str
    kind: SchemeKind
    name: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation; `reason` says why it can't become a tool."""

    method: str
    path: str
    operation_id: str = ""
    summary: str = ""
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    binding: Mapping[str, Any] = field(default_factory=dict)
    server: str = ""
    security: tuple[tuple[str, ...], ...] = ()
    is_deprecated: bool = False
    notes: tuple[str, ...] = ()
    reason: str = ""

    @property
    def key(self) -> str:
        """What identifies it when the document is imported again."""
        return f"{self.method} {self.path}"

    @property
    def is_read(self) -> bool:
        return self.method == "GET"

    @property
    def endpoint_path(self) -> str:
        """The path with the arguments' names in braces."""
        names = {
            place["name"]: argument
            for argument, place in self.binding.get("parameters", {}).items()
            if place["in"] == "path"
        }
        return PATH_PARAMETER.sub(
            lambda found: f"{{{names.get(found[1], found[1])}}}", self.path
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiDocument:
    title: str
    version: str
    servers: tuple[str, ...]
    operations: tuple[Operation, ...]
    schemes: tuple[SecurityScheme, ...]


def read_document(text: str, url: str = "") -> ApiDocument:
    """Read a document that came from this URL, if any; raise BadDocument."""
    data = _decode(text)
    version = str(data.get("openapi") or data.get("swagger") or "")
    if not version:
        raise BadDocument("This isn't an OpenAPI document. It has no openapi or swagger field.")
    if not re.match(r"(?:3\.[0-9]|2\.0)", version):
        raise BadDocument(
            f"OpenAPI {version[:20]!r} isn't supported. Use 3.0, 3.1 or Swagger 2.0."
        )
    paths = _object(data.get("paths", {}), "paths")
    if not paths:
        raise BadDocument("The document has no operations.")
    reader = _OperationReader(data, is_swagger=version.startswith("2"), url=url)
    try:
        operations = tuple(reader.read(paths))
    except TooComplex:
        raise BadDocument("The document is too complex.") from None
    if not operations:
        raise BadDocument("The document has no operations.")
    info = data.get("info") if isinstance(data.get("info"), Mapping) else {}
    return ApiDocument(
        title=shorten((info or {}).get("title"), 100) or "API",
        version=shorten(str((info or {}).get("version", "")), 40),
        servers=tuple(dict.fromkeys(_servers(data, url))),
        operations=operations,
        schemes=tuple(_schemes(data, reader.references)),
    )


def tool_name(operation: Operation, prefix: str = "") -> str:
    """Return a name that every provider accepts, from the operation's ID or its path."""
    raw = operation.operation_id or f"{operation.method.lower()}_{operation.path}"
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", f"{prefix}{raw}").strip("_-")
    return re.sub(r"_{2,}", "_", name)[:MAX_NAME_CHARS].rstrip("_-") or "operation"


def _decode(text: str) -> Mapping[str, Any]:
    if len(text.encode(errors="replace")) > MAX_DOCUMENT_BYTES:
        raise BadDocument(f"The document is larger than {MAX_DOCUMENT_BYTES:,} bytes.")
    text = text.removeprefix("\ufeff")
    if text.lstrip()[:1] in ("{", "["):
        try:
            data = foreign_json.loads(text)
        except json.JSONDecodeError as error:
            reason = f"{error.msg} (line {error.lineno}, column {error.colno})"
            raise BadDocument(f"Invalid JSON: {reason}.") from None
        except RecursionError:
            raise BadDocument("This is nested too deeply.") from None
    else:
        root, problems = read_yaml(text)
        for each in problems:
            raise BadDocument(
                f"Invalid YAML (line {each.line}, column {each.column}): {each.message}"
            )
        data = root.plain if root else None
    if not isinstance(data, Mapping):
        raise BadDocument("This isn't an OpenAPI document. It has no openapi or swagger field.")
    return data


def _object(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadDocument(f"{place!r} must be an object.")
    return value


class _OperationReader:
    """Reads the operations of a document."""

    def __init__(self, data: Mapping[str, Any], *, is_swagger: bool, url: str) -> None:
        self.references = References(data)
        self._data = data
        self._is_swagger = is_swagger
        self._url = url

    def read(self, paths: Mapping[str, Any]) -> Iterator[Operation]:
        count = 0
        for path, item in paths.items():
            if path.startswith("x-"):
                continue
            if not path.startswith("/"):
                raise BadDocument(f"The path {path[:80]!r} must start with /.")
            found = self._resolve(item, f"paths.{path}")
            for method in HTTP_METHODS:
                if method in found:
                    count += 1
                    if count > MAX_OPERATIONS:
                        raise BadDocument(
                            f"A document can have up to {MAX_OPERATIONS} operations."
                        )
                    yield self._operation(method.upper(), path, found, found[method])

    def _resolve(self, value: Any, place: str) -> Mapping[str, Any]:
        try:
            return _object(self.references.resolve(value), place)
        except UnresolvedReference as error:
            raise BadDocument(f"The reference {str(error)!r} can't be resolved.") from error

    def _operation(
        self, method: str, path: str, item: Mapping[str, Any], given: Any
    ) -> Operation:
        about = _object(given, f"paths.{path}.{method.lower()}")
        summary = shorten(about.get("summary"), MAX_SUMMARY_CHARS)
        description = shorten(about.get("description"), MAX_TOOL_DESCRIPTION_CHARS)
        operation_id = about.get("operationId")
        fields: dict[str, Any] = {
            "method": method,
            "path": path,
            "operation_id": operation_id if isinstance(operation_id, str) else "",
            "summary": summary or shorten(description, MAX_SUMMARY_CHARS),
            "description": description or summary,
            "is_deprecated": about.get("deprecated") is True,
            "security": self._security(about),
            "server": next(
                iter(_server_urls(about.get("servers") or item.get("servers"), self._url)), ""
            ),
        }
        try:
            if method not in METHODS:
                raise _Unsupported(f"{method} requests aren't supported.")
            arguments = self._arguments(path, item, about)
        except _Unsupported as why:
            return Operation(**fields, reason=str(why))
        except UnresolvedReference as error:
            return Operation(
                **fields, reason=f"The reference {str(error)!r} can't be resolved."
            )
        return Operation(**fields, **arguments)

    def _arguments(
        self, path: str, item: Mapping[str, Any], about: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the arguments in a schema of bearable size; a larger one loses its depths."""
        listed = [*_list(item.get("parameters")), *_list(about.get("parameters"))]
        found: dict[str, Any] = {}
        for depth in SCHEMA_DEPTHS:
            schemas = SchemaConverter(self.references, depth)
            builder = _ArgumentBuilder(self.references, schemas, is_swagger=self._is_swagger)
            parameters, binding = builder.build(path, listed, about, self._consumes(about))
            found = {
                "parameters": parameters,
                "binding": binding,
                "notes": tuple(builder.notes),
            }
            if not schemas.is_exhausted and len(json.dumps(parameters)) <= MAX_SCHEMA_CHARS:
                break
        return found

    def _security(self, about: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
        given = about.get("security", self._data.get("security"))
        return tuple(tuple(each) for each in _list(given) if isinstance(each, Mapping))

    def _consumes(self, about: Mapping[str, Any]) -> list[str]:
        return [str(each) for each in _list(about.get("consumes", self._data.get("consumes")))]


class _ArgumentBuilder:
    """Builds the arguments of one operation, and where each of them is sent."""

    def __init__(
        self, references: References, schemas: SchemaConverter, *, is_swagger: bool
    ) -> None:
        self.notes: list[str] = []
        self._references = references
        self._is_swagger = is_swagger
        self._schemas = schemas
        self._properties: dict[str, Any] = {}
        self._required: list[str] = []
        self._places: dict[str, dict[str, Any]] = {}
        self._body: dict[str, str] = {}

    def build(
        self, path: str, listed: list[Any], about: Mapping[str, Any], consumes: list[str]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        form: list[Mapping[str, Any]] = []
        if len(listed) + path.count("{") > MAX_PARAMETERS:
            raise _Unsupported(f"It has more than {MAX_PARAMETERS} parameters.")
        for given in self._last_of_each(listed):
            if given.get("in") == "formData":
                form.append(given)
            elif given.get("in") == "body":
                self._add_body(given.get("schema"), "json", given)
            else:
                self._add_parameter(given, path)
        for name in PATH_PARAMETER.findall(path):
            if name not in [p["name"] for p in self._places.values() if p["in"] == "path"]:
                self._add(name, {"type": "string"}, {"in": "path", "name": name}, True)
        if form:
            self._add_form(form, consumes)
        elif "requestBody" in about and not self._is_swagger:
            self._add_request_body(self._references.resolve(about["requestBody"]))
        schema: dict[str, Any] = {"type": "object", "properties": self._properties}
        if self._required:
            schema["required"] = self._required
        binding: dict[str, Any] = {"parameters": self._places}
        return schema, {**binding, "body": self._body} if self._body else binding

    def _last_of_each(self, listed: list[Any]) -> list[Mapping[str, Any]]:
        """Return the parameters; those of the operation replace those of its path."""
        found: dict[tuple[str, str], Mapping[str, Any]] = {}
        for each in listed:
            given = self._references.resolve(each)
            if isinstance(given, Mapping) and isinstance(given.get("name"), str):
                found[str(given.get("in")), given["name"]] = given
        return list(found.values())

    def _add_parameter(self, given: Mapping[str, Any], path: str) -> None:
        name, where = given["name"], str(given.get("in"))
        is_required = given.get("required") is True or where == "path"
        if where == "header" and name.lower() in IGNORED_HEADERS:
            return
        if where == "path" and name not in PATH_PARAMETER.findall(path):
            return
        place = self._place(given, name, where)
        if place is None:
            if is_required:
                raise _Unsupported(f"The required parameter {name!r} can't be sent ({where}).")
            self.notes.append(f"Skipped the parameter {name!r} ({where}).")
            return
        schema = self._schemas.convert(_parameter_schema(given))
        if note := shorten(given.get("description")):
            schema["description"] = note
        self._add(name, schema, place, is_required)

    def _place(self, given: Mapping[str, Any], name: str, where: str) -> dict[str, Any] | None:
        """Return where and how it is sent; None if that isn't supported."""
        style, explode = _style(given, where)
        if where == "header":
            is_free = HEADER_NAME.fullmatch(name) and name.lower() not in RESERVED_HEADERS
            return {"in": where, "name": name} if is_free and name.lower() != "cookie" else None
        if where == "path":
            return {"in": where, "name": name} if style == "simple" else None
        if where != "query" or style not in QUERY_STYLES | {"json"}:
            return None
        place: dict[str, Any] = {"in": where, "name": name}
        return (
            place
            if (style, explode) == ("form", True)
            else {**place, "style": style, "explode": explode}
        )

    def _add_request_body(self, body: Any) -> None:
        content = body.get("content") if isinstance(body, Mapping) else None
        if not isinstance(content, Mapping) or not content:
            return
        for kind, matches in BODY_KINDS.items():
            for media, about in content.items():
                if matches.fullmatch(str(media)):
                    schema = about.get("schema") if isinstance(about, Mapping) else None
                    self._add_body(schema, kind, body)
                    return
        kinds = ", ".join(map(str, content))[:100]
        if body.get("required") is True:
            raise _Unsupported(f"The request body must be JSON, a form or text, not {kinds}.")
        self.notes.append(f"Skipped the request body ({kinds}).")

    def _add_body(self, schema: Any, kind: str, about: Mapping[str, Any]) -> None:
        converted = {"type": "string"} if kind == "text" else self._schemas.convert(schema)
        if kind == "form":
            converted.setdefault("type", "object")
        if note := shorten(about.get("description")):
            converted.setdefault("description", note)
        argument = self._add("body", converted, None, about.get("required") is True)
        self._body = {"argument": argument, "type": kind}

    def _add_form(self, fields: list[Mapping[str, Any]], consumes: list[str]) -> None:
        """Add the form of a Swagger 2.0 operation as one object."""
        if any(given.get("type") == "file" for given in fields):
            raise _Unsupported("The request body must be JSON, a form or text, not a file.")
        if consumes and not any("urlencoded" in kind for kind in consumes):
            kinds = ", ".join(consumes)[:100]
            raise _Unsupported(f"The request body must be JSON, a form or text, not {kinds}.")
        schema = {
            "type": "object",
            "properties": {given["name"]: _parameter_schema(given) for given in fields},
            "required": [g["name"] for g in fields if g.get("required") is True],
        }
        self._add_body(schema, "form", {"required": bool(schema["required"])})

    def _add(
        self, name: str, schema: dict[str, Any], place: dict[str, Any] | None, is_required: bool
    ) -> str:
        argument = _argument_name(name, self._properties)
        self._properties[argument] = schema
        if place is not None:
            self._places[argument] = place
        if is_required:
            self._required.append(argument)
        return argument


BODY_KINDS = {
    "json": JSON_TYPE,
    "form": re.compile(r"application/x-www-form-urlencoded(?:\s*;.*)?", re.IGNORECASE),
    "text": re.compile(r"text/plain(?:\s*;.*)?", re.IGNORECASE),
}


def _argument_name(name: str, taken: Iterable[str]) -> str:
    """Return a name that every provider accepts for an argument, and that is free."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_")[:60] or "value"
    free, number = plain, 2
    while free in taken:
        free, number = f"{plain}_{number}", number + 1
    return free


def _parameter_schema(given: Mapping[str, Any]) -> Any:
    """Return a parameter's schema, which Swagger 2.0 writes beside its name."""
    if "schema" in given:
        return given["schema"]
    content = given.get("content")
    if isinstance(content, Mapping):
        media: Any = next(iter(content.values()), None)
        return media.get("schema") if isinstance(media, Mapping) else {}
    return {k: v for k, v in given.items() if k not in {"name", "in", "required"}}


def _style(given: Mapping[str, Any], where: str) -> tuple[str, bool]:
    if isinstance(content := given.get("content"), Mapping):
        is_json = all(JSON_TYPE.fullmatch(str(media)) for media in content)
        return ("json" if is_json else "unknown"), False
    if "collectionFormat" in given or ("type" in given and "schema" not in given):
        default = ("form", False) if where == "query" else ("simple", False)
        format_ = str(given.get("collectionFormat", "csv"))
        return (
            COLLECTION_STYLES.get(format_, ("unknown", False)) if where == "query" else default
        )
    style = str(given.get("style") or ("form" if where in {"query", "cookie"} else "simple"))
    return style, bool(given.get("explode", style == "form"))


def _servers(data: Mapping[str, Any], url: str) -> Iterator[str]:
    if "swagger" in data:
        host, base = data.get("host") or urlsplit(url).netloc, data.get("basePath") or ""
        schemes = [s for s in _list(data.get("schemes")) if s in ("http", "https")]
        schemes = schemes or [urlsplit(url).scheme or "https"]
        for scheme in sorted(schemes, reverse=True):  # https first
            if host:
                yield f"{scheme}://{host}{base}".rstrip("/")
        return
    found = list(_server_urls(data.get("servers"), url))
    # Without servers, OpenAPI means the root of the document's own host.
    yield from found or ([urljoin(url, "/").rstrip("/")] if url else [])


def _server_urls(servers: Any, url: str) -> Iterator[str]:
    """Yield absolute URLs, with the defaults of their variables."""
    for server in _list(servers):
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


def _schemes(data: Mapping[str, Any], references: References) -> Iterator[SecurityScheme]:
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


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
