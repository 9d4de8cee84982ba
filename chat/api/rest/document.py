"""What the OpenAPI document says beyond the signatures: scopes, errors and common headers."""

from collections.abc import Iterator
from typing import Any

from ninja import NinjaAPI
from ninja.operation import Operation
from pydantic.json_schema import models_json_schema

from agents.models import ApiKey

from .access import Scoped
from .idempotency import HEADER, MAX_KEY_CHARS
from .problems import InvalidField, Problem

INTRODUCTION = """\
Ask agents, follow their runs, decide about approvals, and read what they did.

Make a key under *Settings → API keys* and send it as `Authorization: Bearer ash_…`. A key acts
for its user: it never does or shows more than the user's pages would, and only what its scopes
allow. Times are UTC in ISO 8601. A field without a value is absent. Lists are pages, which
`next_cursor` continues. Errors are problems by RFC 9457, whose `code` is the same in every
language.
"""
PROBLEM_TYPE = "application/problem+json"
SERVER = "/api/v1"
AUTHORIZE_URL = "/oauth/authorize"
TOKEN_URL = "/oauth/token"
TAGS = {
    "Chats": "Conversations as on the pages. A message is answered by a run.",
    "Files": "Files to send with messages.",
    "Runs": "One execution of an agent or a workflow, with everything it did.",
    "Approvals": "What runs need from a person before they go on.",
    "Feedback": "Ratings of answers.",
    "Agents": "Who can be asked.",
    "Workflows": "Fixed plans with parameters.",
    "Documents": "The library: what agents search.",
    "Examples and experiments": "Questions with expected answers, and how agents did on them.",
    "Key": "The key that sends the requests.",
}
# Of errors that any operation can have, apart from those of its own.
ERRORS = {
    "400": "The request can’t be read.",
    "401": "There is no valid API key.",
    "403": "The key lacks the scope, or its user the permission.",
    "404": "There is no such thing, or it isn’t the user’s.",
    "409": "It is too late, or something else is in progress.",
    "412": "It was changed since it was read.",
    "413": "The body is too large.",
    "415": "The body isn’t of the type that is expected.",
    "422": "A field is invalid, or what is asked isn’t possible.",
    "429": "The key has reached its rate limit.",
}
EVERY = ("401", "403", "429")
RATE_HEADERS = {
    "RateLimit-Limit": "Requests per minute.",
    "RateLimit-Remaining": "Requests left now.",
    "RateLimit-Reset": "Seconds until all of them are available again.",
}


def operations(api: NinjaAPI) -> Iterator[tuple[str, str, Operation]]:
    """Yield every operation with its path and its method."""
    for router in api._get_bound_routers():
        for path, view in router.path_operations.items():
            for operation in view.operations:
                for method in operation.methods:
                    yield f"{router.prefix}{path}", method, operation


def scope_of(operation: Operation) -> str:
    """Return the scope that an operation needs; empty if any key may call it."""
    [access] = operation.auth_callbacks
    assert isinstance(access, Scoped)
    return access.scope


def complete(schema: dict[str, Any], api: NinjaAPI) -> None:
    """Add security, errors, headers and tags to ninja's document."""
    schema["servers"] = [{"url": SERVER}]
    schema["tags"] = [{"name": name, "description": text} for name, text in TAGS.items()]
    components = schema["components"]
    _add_components(components)
    for name, component in components["schemas"].items():
        # Only input forbids other fields; in output, a field without a value is absent.
        if component.get("additionalProperties") is not False:
            for details in component.get("properties", {}).values():
                _forbid_null(details)
        component.setdefault("title", name)
    by_id = {operation.operation_id: operation for _, _, operation in operations(api)}
    for path, methods in schema["paths"].items():
        for method, details in methods.items():
            _complete_operation(details, by_id[details["operationId"]], method, path)


def _add_components(components: dict[str, Any]) -> None:
    _, problems = models_json_schema(
        [(Problem, "serialization"), (InvalidField, "serialization")],
        ref_template="#/components/schemas/{model}",
    )
    components["schemas"] |= problems["$defs"]
    components["headers"] = {
        name: {"description": text, "schema": {"type": "integer"}}
        for name, text in RATE_HEADERS.items()
    }
    components["responses"] = {
        status: {
            "description": text,
            "content": {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status, text in {**ERRORS, "default": "Another error."}.items()
    }
    scopes = {scope.value: str(scope.label) for scope in ApiKey.Scope}
    flow = {"authorizationUrl": AUTHORIZE_URL, "tokenUrl": TOKEN_URL, "refreshUrl": TOKEN_URL}
    components["securitySchemes"] = {
        "key": {
            "type": "http",
            "scheme": "bearer",
            "description": "An API key, with the scopes that an operation names.",
        },
        "oauth": {"type": "oauth2", "flows": {"authorizationCode": {**flow, "scopes": scopes}}},
    }


def _forbid_null(details: dict[str, Any]) -> None:
    choices = [choice for choice in details.get("anyOf", []) if choice != {"type": "null"}]
    if "anyOf" in details and len(choices) == 1:
        del details["anyOf"]
        details |= choices[0]
    elif "anyOf" in details:
        details["anyOf"] = choices
    if details.get("default", "") is None:
        del details["default"]


def _complete_operation(
    details: dict[str, Any], operation: Operation, method: str, path: str
) -> None:
    scope = scope_of(operation)
    scopes = [scope] if scope else []
    details["security"] = [{"key": scopes}, {"oauth": scopes}]
    parameters = details["parameters"]
    statuses = {*EVERY, *(["404"] if "{" in path else [])}
    if "requestBody" in details:
        statuses |= {"400", "413", "415"}
    if "requestBody" in details or parameters:
        statuses.add("422")
    if method == "post":
        statuses.add("409")
    if getattr(operation.view_func, "is_idempotent", False):
        parameters.append(
            _header(
                HEADER, "The same key and request create only once.", maxLength=MAX_KEY_CHARS
            )
        )
    if method == "patch":
        statuses.add("412")
        parameters.append(_header("If-Match", "The ETag of the version to change."))
    responses = details["responses"]
    for status, response in responses.items():
        if int(status) < 400:
            limits = {name: {"$ref": f"#/components/headers/{name}"} for name in RATE_HEADERS}
            response["headers"] = response.get("headers", {}) | limits
    for status in sorted(statuses):
        responses[status] = {"$ref": f"#/components/responses/{status}"}
    responses["default"] = {"$ref": "#/components/responses/default"}


def _header(name: str, description: str, **schema: Any) -> dict[str, Any]:
    return {
        "in": "header",
        "name": name,
        "description": description,
        "required": False,
        "schema": {"type": "string", **schema},
    }
