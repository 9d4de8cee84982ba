"""The arguments of an operation, as a JSON Schema and where each is sent."""

import re
from collections.abc import Mapping
from typing import Any

from agents.engine.sentences import Sentence as _

from ..http.binding import HEADER_NAME, RESERVED_HEADERS
from .errors import Unsupported
from .schema import References, SchemaConverter, shorten

MAX_PARAMETERS = 200
PATH_PARAMETER = re.compile(r"\{([^{}/]+)\}")
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
BODY_KINDS = {
    "json": JSON_TYPE,
    "form": re.compile(r"application/x-www-form-urlencoded(?:\s*;.*)?", re.IGNORECASE),
    "text": re.compile(r"text/plain(?:\s*;.*)?", re.IGNORECASE),
}


class ArgumentBuilder:
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
        self._bindings: dict[str, dict[str, Any]] = {}
        self._body: dict[str, str] = {}

    def build(
        self,
        path: str,
        parameters: list[Any],
        operation: Mapping[str, Any],
        consumes: list[str],
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if len(parameters) + path.count("{") > MAX_PARAMETERS:
            raise Unsupported(_("It has more than %(limit)s parameters.", limit=MAX_PARAMETERS))
        # Those of the operation come last, and replace those of its path.
        by_location: dict[tuple[str, str], Mapping[str, Any]] = {}
        for item in parameters:
            parameter = self._references.resolve(item)
            if isinstance(parameter, Mapping) and isinstance(parameter.get("name"), str):
                by_location[str(parameter.get("in")), parameter["name"]] = parameter
        form: list[Mapping[str, Any]] = []
        for (location, _name), parameter in by_location.items():
            if location == "formData":
                form.append(parameter)
            elif location == "body":
                self._add_body(parameter.get("schema"), "json", parameter)
            else:
                self._add_parameter(parameter, location, path)
        for name in PATH_PARAMETER.findall(path):
            if name not in [b["name"] for b in self._bindings.values() if b["in"] == "path"]:
                self._add(name, {"type": "string"}, {"in": "path", "name": name}, True)
        if form:
            self._add_form(form, consumes)
        elif "requestBody" in operation and not self._is_swagger:
            self._add_request_body(self._references.resolve(operation["requestBody"]))
        schema: dict[str, Any] = {"type": "object", "properties": self._properties}
        if self._required:
            schema["required"] = self._required
        binding: dict[str, Any] = {"parameters": self._bindings}
        if self._body:
            binding["body"] = self._body
        return schema, binding

    def _add_parameter(self, parameter: Mapping[str, Any], location: str, path: str) -> None:
        name = parameter["name"]
        is_required = parameter.get("required") is True or location == "path"
        if location == "header" and name.lower() in IGNORED_HEADERS:
            return
        if location == "path" and name not in PATH_PARAMETER.findall(path):
            return
        binding = _bind(parameter, name, location)
        if binding is None:
            if is_required:
                raise Unsupported(
                    _(
                        "The required parameter %(name)s can't be sent (%(place)s).",
                        name=repr(name),
                        place=location,
                    )
                )
            self.notes.append(
                _(
                    "Skipped the parameter %(name)s (%(place)s).",
                    name=repr(name),
                    place=location,
                )
            )
            return
        schema = self._schemas.convert(_parameter_schema(parameter))
        if note := shorten(parameter.get("description")):
            schema["description"] = note
        self._add(name, schema, binding, is_required)

    def _add_request_body(self, body: Any) -> None:
        content = body.get("content") if isinstance(body, Mapping) else None
        if not isinstance(content, Mapping) or not content:
            return
        for kind, pattern in BODY_KINDS.items():
            for media_type, media in content.items():
                if pattern.fullmatch(str(media_type)):
                    schema = media.get("schema") if isinstance(media, Mapping) else None
                    self._add_body(schema, kind, body)
                    return
        kinds = ", ".join(map(str, content))[:100]
        if body.get("required") is True:
            raise Unsupported(
                _("The request body must be JSON, a form or text, not %(types)s.", types=kinds)
            )
        self.notes.append(_("Skipped the request body (%(types)s).", types=kinds))

    def _add_body(self, schema: Any, kind: str, body: Mapping[str, Any]) -> None:
        converted = {"type": "string"} if kind == "text" else self._schemas.convert(schema)
        if kind == "form":
            converted.setdefault("type", "object")
        if note := shorten(body.get("description")):
            converted.setdefault("description", note)
        argument = self._add("body", converted, None, body.get("required") is True)
        self._body = {"argument": argument, "type": kind}

    def _add_form(self, fields: list[Mapping[str, Any]], consumes: list[str]) -> None:
        """Add the form of a Swagger 2.0 operation as one object."""
        if any(field.get("type") == "file" for field in fields):
            raise Unsupported(_("The request body must be JSON, a form or text, not a file."))
        if consumes and not any("urlencoded" in kind for kind in consumes):
            kinds = ", ".join(consumes)[:100]
            raise Unsupported(
                _("The request body must be JSON, a form or text, not %(types)s.", types=kinds)
            )
        schema = {
            "type": "object",
            "properties": {field["name"]: _parameter_schema(field) for field in fields},
            "required": [field["name"] for field in fields if field.get("required") is True],
        }
        self._add_body(schema, "form", {"required": bool(schema["required"])})

    def _add(
        self,
        name: str,
        schema: dict[str, Any],
        binding: dict[str, Any] | None,
        is_required: bool,
    ) -> str:
        """Add an argument by a name that every provider accepts, and return that name."""
        plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_")[:60] or "value"
        argument = plain
        number = 2
        while argument in self._properties:
            argument = f"{plain}_{number}"
            number += 1
        self._properties[argument] = schema
        if binding is not None:
            self._bindings[argument] = binding
        if is_required:
            self._required.append(argument)
        return argument


def _bind(parameter: Mapping[str, Any], name: str, location: str) -> dict[str, Any] | None:
    """Return where and how it is sent; None if that isn't supported."""
    style, explode = _style(parameter, location)
    binding = {"in": location, "name": name}
    if location == "header":
        is_free = HEADER_NAME.fullmatch(name) and name.lower() not in RESERVED_HEADERS
        return binding if is_free and name.lower() != "cookie" else None
    if location == "path":
        return binding if style == "simple" else None
    if location != "query" or style not in QUERY_STYLES | {"json"}:
        return None
    if (style, explode) == ("form", True):
        return binding
    return {**binding, "style": style, "explode": explode}


def _parameter_schema(parameter: Mapping[str, Any]) -> Any:
    """Return a parameter's schema, which Swagger 2.0 writes beside its name."""
    if "schema" in parameter:
        return parameter["schema"]
    content = parameter.get("content")
    if isinstance(content, Mapping):
        media: Any = next(iter(content.values()), None)
        return media.get("schema") if isinstance(media, Mapping) else {}
    return {k: v for k, v in parameter.items() if k not in {"name", "in", "required"}}


def _style(parameter: Mapping[str, Any], location: str) -> tuple[str, bool]:
    if isinstance(content := parameter.get("content"), Mapping):
        is_json = all(JSON_TYPE.fullmatch(str(media_type)) for media_type in content)
        return ("json" if is_json else "unknown"), False
    if "collectionFormat" in parameter or ("type" in parameter and "schema" not in parameter):
        if location != "query":
            return "simple", False
        collection_format = str(parameter.get("collectionFormat", "csv"))
        return COLLECTION_STYLES.get(collection_format, ("unknown", False))
    default = "form" if location in {"query", "cookie"} else "simple"
    style = str(parameter.get("style") or default)
    return style, bool(parameter.get("explode", style == "form"))
