"""An OpenAPI document: decoded and read."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents.engine.plans import read_yaml
from agents.engine.sentences import Sentence as _

from .. import foreign_json
from .errors import BadDocument
from .operations import Operation, OperationReader
from .schema import TooComplex, shorten
from .security import SecurityScheme, read_schemes
from .servers import read_servers
from .values import require_object

MAX_DOCUMENT_BYTES = 5_000_000


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
        raise BadDocument(
            _("This isn't an OpenAPI document. It has no openapi or swagger field.")
        )
    if not re.match(r"(?:3\.[0-9]|2\.0)", version):
        raise BadDocument(
            _(
                "OpenAPI %(version)s isn't supported. Use 3.0, 3.1 or Swagger 2.0.",
                version=repr(version[:20]),
            )
        )
    paths = require_object(data.get("paths", {}), "paths")
    if not paths:
        raise BadDocument(_("The document has no operations."))
    reader = OperationReader(data, is_swagger=version.startswith("2"), url=url)
    try:
        operations = tuple(reader.read(paths))
    except TooComplex:
        raise BadDocument(_("The document is too complex.")) from None
    if not operations:
        raise BadDocument(_("The document has no operations."))
    info = data.get("info") if isinstance(data.get("info"), Mapping) else {}
    return ApiDocument(
        title=shorten((info or {}).get("title"), 100) or "API",
        version=shorten(str((info or {}).get("version", "")), 40),
        servers=tuple(dict.fromkeys(read_servers(data, url))),
        operations=operations,
        schemes=tuple(read_schemes(data, reader.references)),
    )


def _decode(text: str) -> Mapping[str, Any]:
    if len(text.encode(errors="replace")) > MAX_DOCUMENT_BYTES:
        raise BadDocument(
            _("The document is larger than %(limit)s bytes.", limit=f"{MAX_DOCUMENT_BYTES:,}")
        )
    text = text.removeprefix("\ufeff")
    if text.lstrip()[:1] in ("{", "["):
        try:
            data = foreign_json.loads(text)
        except json.JSONDecodeError as error:
            reason = _(
                "%(reason)s (line %(line)s, column %(column)s)",
                reason=error.msg,
                line=error.lineno,
                column=error.colno,
            )
            raise BadDocument(_("Invalid JSON: %(reason)s.", reason=reason)) from None
        except RecursionError:
            raise BadDocument(_("This is nested too deeply.")) from None
    else:
        root, problems = read_yaml(text)
        for problem in problems:
            raise BadDocument(
                _(
                    "Invalid YAML (line %(line)s, column %(column)s): %(sentence)s",
                    line=problem.line,
                    column=problem.column,
                    sentence=problem.message,
                )
            )
        data = root.plain if root else None
    if not isinstance(data, Mapping):
        raise BadDocument(
            _("This isn't an OpenAPI document. It has no openapi or swagger field.")
        )
    return data
