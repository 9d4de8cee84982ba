"""Tools for MCP's suite, which prescribes what its server's tools return and ask."""

from typing import Any

from agents.engine import ToolResult, function_tool
from agents.engine.call_context import Question, current
from agents.engine.tool import Attachment
from tests.pictures import png, wav

CONTACT = {
    "username": {"type": "string", "description": "User's response"},
    "email": {"type": "string", "description": "User's email address"},
}
DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {
        "type": "string",
        "enum": ["active", "inactive", "pending"],
        "default": "active",
    },
    "verified": {"type": "boolean", "default": True},
}
VALUES = [
    {"const": "value1", "title": "First Option"},
    {"const": "value2", "title": "Second Option"},
    {"const": "value3", "title": "Third Option"},
]
OPTIONS = ["option1", "option2", "option3"]
CHOICES = {
    "untitledSingle": {"type": "string", "enum": OPTIONS},
    "titledSingle": {"type": "string", "oneOf": VALUES},
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": VALUES}},
}
PICTURE = Attachment(data=png(), mime_type="image/png")
SOUND = Attachment(data=wav(), mime_type="audio/wav")
TEXT = Attachment(data=b'{"test": "data"}', mime_type="application/json", name="data.json")


@function_tool(effect="read")
def suite_image() -> ToolResult:
    """Return an image."""
    return ToolResult("An image.", attachments=(PICTURE,))


@function_tool(effect="read")
def suite_sound() -> ToolResult:
    """Return a sound."""
    return ToolResult("A sound.", attachments=(SOUND,))


@function_tool(effect="read")
def suite_file() -> ToolResult:
    """Return a text file."""
    return ToolResult("A file.", attachments=(TEXT,))


@function_tool(effect="read")
def suite_files() -> ToolResult:
    """Return an image and a text file."""
    return ToolResult("Several files.", attachments=(PICTURE, TEXT))


@function_tool(effect="read")
async def suite_contact() -> str:
    """Ask for a name and an address."""
    return await _ask(CONTACT, required=["username", "email"])


@function_tool(effect="read")
async def suite_defaults() -> str:
    """Ask with a form of defaults."""
    return await _ask(DEFAULTS)


@function_tool(effect="read")
async def suite_choices() -> str:
    """Ask with a form of choices."""
    return await _ask(CHOICES)


async def _ask(properties: dict[str, Any], **schema: Any) -> str:
    schema = {"type": "object", "properties": properties, **schema}
    question = Question(
        source="suite", message="Please provide your information", schema=schema
    )
    answer = await current().ask(question)
    return f"action={answer.action}, content={dict(answer.content)}"
