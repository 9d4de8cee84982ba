"""The operations of an OpenAPI document."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..http.definition import METHODS
from .arguments import PATH_PARAMETER, ArgumentBuilder
from .errors import BadDocument, Unsupported
from .schema import References, SchemaConverter, UnresolvedReference, shorten
from .servers import server_urls
from .values import list_or_empty, require_object

MAX_OPERATIONS = 1_000
MAX_SCHEMA_CHARS = 20_000
SCHEMA_DEPTHS = (8, 4, 3, 2)
MAX_NAME_CHARS = 64
MAX_SUMMARY_CHARS = 200
MAX_TOOL_DESCRIPTION_CHARS = 1_000
HTTP_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


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


def tool_name(operation: Operation, prefix: str = "") -> str:
    """Return a name that every provider accepts, from the operation's ID or its path."""
    raw = operation.operation_id or f"{operation.method.lower()}_{operation.path}"
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", f"{prefix}{raw}").strip("_-")
    return re.sub(r"_{2,}", "_", name)[:MAX_NAME_CHARS].rstrip("_-") or "operation"


class OperationReader:
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
            return require_object(self.references.resolve(value), place)
        except UnresolvedReference as error:
            raise BadDocument(f"The reference {str(error)!r} can't be resolved.") from error

    def _operation(
        self, method: str, path: str, item: Mapping[str, Any], given: Any
    ) -> Operation:
        about = require_object(given, f"paths.{path}.{method.lower()}")
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
                iter(server_urls(about.get("servers") or item.get("servers"), self._url)), ""
            ),
        }
        try:
            if method not in METHODS:
                raise Unsupported(f"{method} requests aren't supported.")
            arguments = self._arguments(path, item, about)
        except Unsupported as why:
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
        listed = [
            *list_or_empty(item.get("parameters")),
            *list_or_empty(about.get("parameters")),
        ]
        found: dict[str, Any] = {}
        for depth in SCHEMA_DEPTHS:
            schemas = SchemaConverter(self.references, depth)
            builder = ArgumentBuilder(self.references, schemas, is_swagger=self._is_swagger)
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
        return tuple(tuple(each) for each in list_or_empty(given) if isinstance(each, Mapping))

    def _consumes(self, about: Mapping[str, Any]) -> list[str]:
        return [
            str(each)
            for each in list_or_empty(about.get("consumes", self._data.get("consumes")))
        ]
