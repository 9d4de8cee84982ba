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
from agents.tools.mcp.configuration.config import slugify
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

    def __add__(self, outcome: "ImportOutcome") -> "ImportOutcome":
        return ImportOutcome(
            created=self.created + outcome.created,
            updated=self.updated + outcome.updated,
            disabled=self.disabled + outcome.disabled,
            keyless=self.keyless + outcome.keyless,
            failed=self.failed + outcome.failed,
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
    used_names = {*ToolRegistration.objects.values_list("name", flat=True), *installed_names()}
    prefix = f"{slugify(document.title)[:24].strip('_-')}_"
    items = []
    for operation in document.operations:
        row = rows.pop(operation.key, None)
        if row is not None:
            name = row.name
        else:
            name = tool_name(operation)
            if name in used_names:
                name = tool_name(operation, prefix)
            stem = name[: MAX_NAME_CHARS - 4]
            number = 2
            while name in used_names:
                name = f"{stem}_{number}"
                number += 1
        used_names.add(name)
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
        if item.operation.key not in picked or item.state == ItemState.REFUSED:
            continue
        headers = _headers(plan, item, secrets)
        if reason := _problem(item.draft):
            failed.append((item.draft.name, reason))
        elif item.row is None:
            row = _new_row(item.draft)
            row.headers = headers
            row.save()
            created.append(row)
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
        split = urlsplit(url)
        return split.scheme.lower(), (split.hostname or "").lower(), split.port
    except ValueError:
        return "", "", None


def _rows_of(document: ApiDocument) -> Iterable[ToolRegistration]:
    return ToolRegistration.objects.filter(
        source=Source.HTTP, definition__http__api=document.title
    ).order_by("name")


def _binding(row: ToolRegistration) -> Mapping[str, Any]:
    binding = row.definition.get("http") if isinstance(row.definition, dict) else None
    return binding if isinstance(binding, dict) else {}


def _plan_item(
    document: ApiDocument,
    base_url: str,
    operation: Operation,
    row: ToolRegistration | None,
    name: str,
) -> ImportItem:
    endpoint = f"{(operation.server or base_url).rstrip('/')}{operation.endpoint_path}"
    schemes = {scheme.key: scheme for scheme in document.schemes}
    used = [key for requirement in operation.security for key in requirement if key in schemes]
    in_query = [schemes[key].name for key in used if schemes[key].kind == "query"]
    http = {**operation.binding, "api": document.title, "operation": operation.key}
    if in_query:
        http["query_secrets"] = list(dict.fromkeys(in_query))
    definition: dict[str, Any] = {
        "name": name,
        "description": operation.description or operation.summary or operation.key,
        "parameters": dict(operation.parameters),
        "http": http,
    }
    draft = ToolDraft(
        name=name, endpoint=endpoint, method=operation.method, definition=definition
    )
    item = ImportItem(operation=operation, state=ItemState.NEW, draft=draft, row=row)
    # Checked with bare argument names, because checking whole schemas of a list is slow.
    properties = definition["parameters"].get("properties", {})
    parameters = {**definition["parameters"], "properties": {name: {} for name in properties}}
    bare_draft = replace(draft, definition={**definition, "parameters": parameters})
    if reason := operation.reason or _problem(bare_draft):
        return replace(item, state=ItemState.REFUSED, reason=reason)
    if row is None:
        return item
    old_definition = row.definition if isinstance(row.definition, dict) else {}
    changes = [
        (key, old_definition.get(key), definition[key])
        for key in ("description", "parameters", "http")
        if old_definition.get(key) != definition[key]
    ]
    if row.endpoint != endpoint:
        changes.append(("endpoint", row.endpoint, endpoint))
    state = ItemState.CHANGED if changes else ItemState.SAME
    return replace(item, state=state, changes=tuple(changes))


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


def _new_row(draft: ToolDraft) -> ToolRegistration:
    return ToolRegistration(
        name=draft.name,
        source=Source.HTTP,
        definition=draft.definition,
        endpoint=draft.endpoint,
        method=draft.method,
    )


def _update_tool(row: ToolRegistration, draft: ToolDraft, headers: Mapping[str, str]) -> bool:
    """Update the row; return False if its headers were removed, because it has moved."""
    is_moved = origin(row.endpoint) != origin(draft.endpoint)
    had_headers = bool(row.headers)
    row.definition = draft.definition
    row.endpoint = draft.endpoint
    row.method = draft.method
    if is_moved:
        row.headers = dict(headers)
    elif headers:
        try:
            row.headers = {**row.headers.reveal(), **headers}
        except UnreadableSecret:
            row.headers = dict(headers)
    row.save(update_fields=["definition", "endpoint", "method", "headers"])
    return bool(headers) or not (is_moved and had_headers)


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
