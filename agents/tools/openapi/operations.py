"""The operations of an OpenAPI document."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.engine.sentences import Sentence as _

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
UNRESOLVED = _("The reference %(ref)s can't be resolved.")


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
            binding["name"]: argument
            for argument, binding in self.binding.get("parameters", {}).items()
            if binding["in"] == "path"
        }
        return PATH_PARAMETER.sub(
            lambda match: f"{{{names.get(match[1], match[1])}}}", self.path
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
                raise BadDocument(
                    _("The path %(path)s must start with /.", path=repr(path[:80]))
                )
            try:
                path_item = require_object(self.references.resolve(item), f"paths.{path}")
            except UnresolvedReference as error:
                raise BadDocument(UNRESOLVED.fill(ref=repr(str(error)))) from error
            for method in HTTP_METHODS:
                if method in path_item:
                    count += 1
                    if count > MAX_OPERATIONS:
                        raise BadDocument(
                            _(
                                "A document can have up to %(limit)s operations.",
                                limit=MAX_OPERATIONS,
                            )
                        )
                    yield self._operation(method, path, path_item)

    def _operation(self, key: str, path: str, path_item: Mapping[str, Any]) -> Operation:
        method = key.upper()
        operation = require_object(path_item[key], f"paths.{path}.{key}")
        summary = shorten(operation.get("summary"), MAX_SUMMARY_CHARS)
        description = shorten(operation.get("description"), MAX_TOOL_DESCRIPTION_CHARS)
        operation_id = operation.get("operationId")
        security = list_or_empty(operation.get("security", self._data.get("security")))
        servers = operation.get("servers") or path_item.get("servers")
        fields: dict[str, Any] = {
            "method": method,
            "path": path,
            "operation_id": operation_id if isinstance(operation_id, str) else "",
            "summary": summary or shorten(description, MAX_SUMMARY_CHARS),
            "description": description or summary,
            "is_deprecated": operation.get("deprecated") is True,
            "security": tuple(tuple(item) for item in security if isinstance(item, Mapping)),
            "server": next(iter(server_urls(servers, self._url)), ""),
        }
        try:
            if method not in METHODS:
                raise Unsupported(_("%(method)s requests aren't supported.", method=method))
            arguments = self._arguments(path, path_item, operation)
        except Unsupported as why:
            return Operation(**fields, reason=str(why))
        except UnresolvedReference as error:
            return Operation(**fields, reason=UNRESOLVED.fill(ref=repr(str(error))))
        return Operation(**fields, **arguments)

    def _arguments(
        self, path: str, path_item: Mapping[str, Any], operation: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the arguments in a schema of bearable size; a larger one loses its depths."""
        listed = [
            *list_or_empty(path_item.get("parameters")),
            *list_or_empty(operation.get("parameters")),
        ]
        consumes = list_or_empty(operation.get("consumes", self._data.get("consumes")))
        media_types = [str(media_type) for media_type in consumes]
        arguments: dict[str, Any] = {}
        for depth in SCHEMA_DEPTHS:
            schemas = SchemaConverter(self.references, depth)
            builder = ArgumentBuilder(self.references, schemas, is_swagger=self._is_swagger)
            parameters, binding = builder.build(path, listed, operation, media_types)
            arguments = {
                "parameters": parameters,
                "binding": binding,
                "notes": tuple(builder.notes),
            }
            if not schemas.is_exhausted and len(json.dumps(parameters)) <= MAX_SCHEMA_CHARS:
                break
        return arguments
