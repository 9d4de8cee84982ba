"""The arguments of an operation, as a JSON Schema and where each is sent."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

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
        self._places: dict[str, dict[str, Any]] = {}
        self._body: dict[str, str] = {}

    def build(
        self, path: str, listed: list[Any], about: Mapping[str, Any], consumes: list[str]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        form: list[Mapping[str, Any]] = []
        if len(listed) + path.count("{") > MAX_PARAMETERS:
            raise Unsupported(f"It has more than {MAX_PARAMETERS} parameters.")
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
                raise Unsupported(f"The required parameter {name!r} can't be sent ({where}).")
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
            raise Unsupported(f"The request body must be JSON, a form or text, not {kinds}.")
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
            raise Unsupported("The request body must be JSON, a form or text, not a file.")
        if consumes and not any("urlencoded" in kind for kind in consumes):
            kinds = ", ".join(consumes)[:100]
            raise Unsupported(f"The request body must be JSON, a form or text, not {kinds}.")
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
