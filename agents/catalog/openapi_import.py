"""HTTP tools from an OpenAPI document: what an import would change, and the import itself.

A tool remembers the API and the operation it was made from, so that a later import of the same
document finds it again. Nothing is changed that wasn't picked.
"""

import base64
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from django.db import transaction
from django.utils.translation import gettext as _

from agents.models import ToolRegistration
from agents.models.secret import UnreadableSecret
from agents.tools.mcp.config import slugify
from agents.tools.openapi import (
    MAX_NAME_CHARS,
    ApiDocument,
    Operation,
    SecurityScheme,
    tool_name,
)

from .tool_factory import http_tool, installed_names

MAX_ENDPOINT_CHARS = 500
Source = ToolRegistration.Source


class ItemState(StrEnum):
    NEW = "new"
    CHANGED = "changed"
    SAME = "same"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDraft:
    """A tool as an operation describes it."""

    name: str
    endpoint: str
    method: str
    definition: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportItem:
    """An operation, its tool if there is one, and what would change."""

    operation: Operation
    state: ItemState
    draft: ToolDraft
    row: ToolRegistration | None = None
    changes: tuple[tuple[str, Any, Any], ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportPlan:
    document: ApiDocument
    base_url: str
    items: tuple[ImportItem, ...]
    gone: tuple[ToolRegistration, ...]

    def of(self, state: ItemState) -> list[ImportItem]:
        return [item for item in self.items if item.state == state]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOutcome:
    """The tools that were created, updated and disabled; `keyless` ones lost their headers.

    `failed` are names of tools that couldn't be made, with the reason.
    """

    created: tuple[ToolRegistration, ...] = ()
    updated: tuple[ImportItem, ...] = ()
    disabled: tuple[ToolRegistration, ...] = ()
    keyless: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()

    def __add__(self, other: "ImportOutcome") -> "ImportOutcome":
        return ImportOutcome(
            created=self.created + other.created,
            updated=self.updated + other.updated,
            disabled=self.disabled + other.disabled,
            keyless=self.keyless + other.keyless,
            failed=self.failed + other.failed,
        )


def suggest_base_url(document: ApiDocument) -> str:
    """Return the base URL of the tools that exist already, or the document's first server."""
    operations = {operation.key: operation for operation in document.operations}
    for row in _rows_of(document):
        operation = operations.get(_binding(row).get("operation", ""))
        path = operation.endpoint_path if operation else ""
        if path and row.endpoint.endswith(path):
            return row.endpoint.removesuffix(path)
    return document.servers[0] if document.servers else ""


def plan_import(document: ApiDocument, base_url: str) -> ImportPlan:
    """Compare the document with the tools that were made from it."""
    rows = {_binding(row).get("operation"): row for row in _rows_of(document)}
    taken = {*ToolRegistration.objects.values_list("name", flat=True), *installed_names()}
    items = []
    for operation in document.operations:
        row = rows.pop(operation.key, None)
        name = row.name if row else _free_name(operation, document, taken)
        taken.add(name)
        items.append(_plan_item(document, base_url, operation, row, name))
    gone = tuple(row for row in rows.values() if row.enabled)
    return ImportPlan(document=document, base_url=base_url, items=tuple(items), gone=gone)


@transaction.atomic
def apply_import(
    plan: ImportPlan,
    picked: Collection[str],
    secrets: Mapping[str, str],
    disabled: Collection[int] = (),
) -> ImportOutcome:
    """Create and update the picked operations' tools, and disable the picked rows."""
    created = []
    updated = []
    keyless = []
    failed = []
    for item in plan.items:
        if item.operation.key not in picked or item.state not in (
            ItemState.NEW,
            ItemState.CHANGED,
            ItemState.SAME,
        ):
            continue
        headers = _headers(plan, item, secrets)
        if reason := _problem(item.draft):
            failed.append((item.draft.name, reason))
        elif item.row is None:
            created.append(_create_tool(item.draft, headers))
        elif item.changes or headers:
            if not _update_tool(item.row, item.draft, headers):
                keyless.append(item.row.name)
            updated.append(item)
    disabled_rows = [row for row in plan.gone if row.pk in disabled]
    for row in disabled_rows:
        row.enabled = False
        row.save(update_fields=["enabled"])
    return ImportOutcome(
        created=tuple(created),
        updated=tuple(updated),
        disabled=tuple(disabled_rows),
        keyless=tuple(keyless),
        failed=tuple(failed),
    )


def origin(url: str) -> tuple[str, str, int | None]:
    """Return where a URL's requests go; secrets aren't sent to another origin."""
    try:
        parts = urlsplit(url)
        return parts.scheme.lower(), (parts.hostname or "").lower(), parts.port
    except ValueError:
        return "", "", None


def _rows_of(document: ApiDocument) -> Iterable[ToolRegistration]:
    return ToolRegistration.objects.filter(
        source=Source.HTTP, definition__http__api=document.title
    ).order_by("name")


def _binding(row: ToolRegistration) -> Mapping[str, Any]:
    binding = row.definition.get("http") if isinstance(row.definition, dict) else None
    return binding if isinstance(binding, dict) else {}


def _free_name(operation: Operation, document: ApiDocument, taken: Collection[str]) -> str:
    """Return the operation's name; with the API's in front if another tool has it."""
    prefix = f"{slugify(document.title)[:24].strip('_-')}_"
    name = tool_name(operation)
    if name in taken:
        name = tool_name(operation, prefix)
    number, first = 2, name
    while name in taken:
        name, number = f"{first[: MAX_NAME_CHARS - 4]}_{number}", number + 1
    return name


def _plan_item(
    document: ApiDocument,
    base_url: str,
    operation: Operation,
    row: ToolRegistration | None,
    name: str,
) -> ImportItem:
    endpoint = f"{(operation.server or base_url).rstrip('/')}{operation.endpoint_path}"
    draft = ToolDraft(
        name=name,
        endpoint=endpoint,
        method=operation.method,
        definition=_definition(document, operation, name),
    )
    fields: dict[str, Any] = {"operation": operation, "draft": draft, "row": row}
    if reason := operation.reason or _problem(_without_schemas(draft)):
        return ImportItem(**fields, state=ItemState.REFUSED, reason=reason)
    if row is None:
        return ImportItem(**fields, state=ItemState.NEW)
    changes = tuple(_changes(row, draft))
    state = ItemState.CHANGED if changes else ItemState.SAME
    return ImportItem(**fields, state=state, changes=changes)


def _definition(document: ApiDocument, operation: Operation, name: str) -> dict[str, Any]:
    schemes = {scheme.key: scheme for scheme in document.schemes}
    used = [key for requirement in operation.security for key in requirement if key in schemes]
    in_query = [schemes[key].name for key in used if schemes[key].kind == "query"]
    http = {**operation.binding, "api": document.title, "operation": operation.key}
    if in_query:
        http["query_secrets"] = list(dict.fromkeys(in_query))
    return {
        "name": name,
        "description": operation.description or operation.summary or operation.key,
        "parameters": dict(operation.parameters),
        "http": http,
    }


def _problem(draft: ToolDraft) -> str:
    """Return why this can't be a tool, or an empty string."""
    if len(draft.endpoint) > MAX_ENDPOINT_CHARS:
        values = {"limit": MAX_ENDPOINT_CHARS}
        return _("The URL is longer than %(limit)d characters.") % values
    try:
        if not urlsplit(draft.endpoint).netloc:
            return ""  # the base URL is still missing
        http_tool(_new_row(draft))
    except ValueError as error:
        return str(error)
    return ""


def _without_schemas(draft: ToolDraft) -> ToolDraft:
    """Return the draft with bare argument names: checking whole schemas of a list is slow."""
    parameters = draft.definition["parameters"]
    bare = {**parameters, "properties": {name: {} for name in parameters.get("properties", {})}}
    return replace(draft, definition={**draft.definition, "parameters": bare})


def _new_row(draft: ToolDraft) -> ToolRegistration:
    return ToolRegistration(
        name=draft.name,
        source=Source.HTTP,
        definition=draft.definition,
        endpoint=draft.endpoint,
        method=draft.method,
    )


def _changes(row: ToolRegistration, draft: ToolDraft) -> Iterable[tuple[str, Any, Any]]:
    definition = row.definition if isinstance(row.definition, dict) else {}
    for key in ("description", "parameters", "http"):
        if definition.get(key) != draft.definition[key]:
            yield key, definition.get(key), draft.definition[key]
    if row.endpoint != draft.endpoint:
        yield "endpoint", row.endpoint, draft.endpoint


def _create_tool(draft: ToolDraft, headers: Mapping[str, str]) -> ToolRegistration:
    row = _new_row(draft)
    row.headers = dict(headers)
    row.save()
    return row


def _update_tool(row: ToolRegistration, draft: ToolDraft, headers: Mapping[str, str]) -> bool:
    """Update the row; return False if its headers were removed, because it has moved."""
    is_moved = origin(row.endpoint) != origin(draft.endpoint)
    had_headers = bool(row.headers)
    row.definition, row.endpoint, row.method = draft.definition, draft.endpoint, draft.method
    if headers:
        row.headers = {**({} if is_moved else _saved_headers(row)), **headers}
    elif is_moved:
        row.headers = {}
    row.save(update_fields=["definition", "endpoint", "method", "headers"])
    return bool(headers) or not (is_moved and had_headers)


def _saved_headers(row: ToolRegistration) -> dict[str, str]:
    try:
        return dict(row.headers.reveal())
    except UnreadableSecret:
        return {}


def _headers(plan: ImportPlan, item: ImportItem, secrets: Mapping[str, str]) -> dict[str, str]:
    """Return the headers for the first way to sign in whose secrets were all entered."""
    if origin(item.draft.endpoint) != origin(plan.base_url):
        return {}
    schemes = {scheme.key: scheme for scheme in plan.document.schemes}
    for requirement in item.operation.security:
        if requirement and all(secrets.get(key) and key in schemes for key in requirement):
            pairs = [_header(schemes[key], secrets[key]) for key in requirement]
            return dict(pairs)
    return {}


def _header(scheme: SecurityScheme, secret: str) -> tuple[str, str]:
    match scheme.kind:
        case "header" | "query":
            return scheme.name, secret
        case "cookie":
            return "Cookie", f"{scheme.name}={secret}"
        case "basic":
            return "Authorization", f"Basic {base64.b64encode(secret.encode()).decode()}"
        case _:
            bare = secret[7:].strip() if secret.lower().startswith("bearer ") else secret
            return "Authorization", f"Bearer {bare}"
