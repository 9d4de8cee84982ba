"""What the schemas of several nouns share."""

from typing import Annotated, Any

from django.db.models import TextChoices
from ninja import Schema
from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema

from agents.db.sanitize import sanitize_text

FILE_TYPE = "*/*"
# Text as every database accepts it.
Text = Annotated[str, AfterValidator(sanitize_text)]
Id = Annotated[int, Field(ge=1, le=2**63 - 1)]
# In a body, "1" isn't a number, and 1 isn't yes.
SentId = Annotated[int, Field(ge=1, le=2**63 - 1, strict=True)]
Switch = Annotated[bool, Field(strict=True)]


def one_of(choices: type[TextChoices]) -> WithJsonSchema:
    """Describe a column's values in place: several models name their choices alike."""
    return WithJsonSchema({"type": "string", "enum": choices.values})


def produces(*types: str) -> dict[str, Any]:
    """Describe responses that aren't made from a schema, for `openapi_extra`."""
    schemas = {
        "application/json": {"type": "object"},
        FILE_TYPE: {"type": "string", "format": "binary"},
    }
    content = {name: {"schema": schemas.get(name, {"type": "string"})} for name in types}
    return {"responses": {200: {"content": content}}}


def example(**body: Any) -> ConfigDict:
    """Give a request body an example of its usual form."""
    return ConfigDict(json_schema_extra={"examples": [body]})


class Input(Schema):
    """A request body: unknown fields are errors, so that a typo has a consequence."""

    model_config = ConfigDict(extra="forbid")


class Usage(Schema):
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None = Field(None, description="Absent if no price is known.")
