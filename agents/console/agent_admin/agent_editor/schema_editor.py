"""Checks a JSON Schema as it is typed: where it is wrong, its fields, and a pasted answer."""

import json
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.console.admin_classes.json_field import JsonObjectField, format_json
from agents.console.tool_admin import schema_summary
from agents.db.sentences import translate
from agents.engine.errors import BadSchema, OutputDecodingFailed
from agents.engine.loop import OutputSchema

MAX_SCHEMA_CHARS = 100_000


def _object(**properties: Any) -> dict[str, Any]:
    required = list(properties)
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


TEXT = {"type": "string"}
NUMBER = {"type": "number"}
EXAMPLES = [
    (
        gettext_lazy("Fields"),
        format_json(_object(product=TEXT, revenue=NUMBER, in_stock={"type": "boolean"})),
    ),
    (
        gettext_lazy("List of items"),
        format_json(
            _object(items={"type": "array", "items": _object(name=TEXT, price=NUMBER)})
        ),
    ),
    (
        gettext_lazy("Choice"),
        format_json(
            _object(category={"enum": ["question", "complaint", "order"]}, reason=TEXT)
        ),
    ),
    (
        gettext_lazy("Findings with sources"),
        format_json(
            _object(
                title=TEXT,
                findings={"type": "array", "items": _object(statement=TEXT, source=TEXT)},
            )
        ),
    ),
]


def check(text: str, sample: str = "") -> dict[str, Any]:
    """Return what is wrong and where, the schema's fields, and whether the sample fits."""
    if not text.strip():
        return {"fields": []}
    if len(text) > MAX_SCHEMA_CHARS:
        return {"problem": _("The schema is too long.")}
    try:
        schema = JsonObjectField().to_python(text)
        output = OutputSchema(schema)
    except ValidationError as error:
        return {"problem": error.messages[0], **_position(text)}
    except BadSchema as error:
        return {"problem": translate(str(error))}
    fields = [
        {
            "name": field.label,
            "kind": field.kind,
            "about": field.description,
            "limits": field.limits,
            "isRequired": field.is_required,
        }
        for field in schema_summary.parse_parameters(schema)
    ]
    if not sample.strip():
        return {"fields": fields}
    try:
        output.decode(sample[:MAX_SCHEMA_CHARS])
    except OutputDecodingFailed as error:
        return {"fields": fields, "fits": False, "sentence": translate(str(error))}
    sentence = _("This answer matches the schema.")
    return {"fields": fields, "fits": True, "sentence": sentence}


def _position(text: str) -> dict[str, int]:
    """Return where the JSON is invalid."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return {"at": error.pos, "line": error.lineno}
    except (ValueError, RecursionError):
        pass
    return {}
