"""Imports a file: each change is made in copies of the tables, and then written at once."""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.translation import gettext as _

from agents.access import audit
from agents.access.audit import hash_chain
from agents.db import shadow_tables
from agents.engine.plans import PlanProblem
from agents.models import AgentVersion, AuditEntry, AuditHead, AuditPerson, WorkflowVersion

from .columns import normalize_newlines, unknown_key_message
from .exporter import AUDIT_SUBJECT
from .kind import ResourceKind, ResourceValues, ValidationIssue
from .kinds import KINDS
from .parser import ConfigFile, FileEntry, parse_file
from .permissions import ConfigUser, has_model_perm, user_or_none

SALT = "agents.console.system.config_files"
MAX_ATTEMPTS = 3


class ImportState(StrEnum):
    NEW = "new"
    CHANGED = "changed"
    OFF = "off"  # not in the file, to be disabled
    LEFT = "left"  # not in the file, unchanged
    SAME = "same"
    REFUSED = "refused"


APPLIED_STATES = (ImportState.NEW, ImportState.CHANGED, ImportState.OFF)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportItem:
    """One item's state before and after the import."""

    kind: ResourceKind
    name: str
    state: ImportState
    before: ResourceValues
    after: ResourceValues
    problems: tuple[PlanProblem, ...] = ()
    needs: tuple[str, ...] = ()
    pk: int | None = None

    @property
    def changed_fields(self) -> list[str]:
        names = dict.fromkeys([*self.before, *self.after])
        return [name for name in names if self.before.get(name) != self.after.get(name)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    items: tuple[ImportItem, ...] = ()
    problems: tuple[PlanProblem, ...] = ()
    seal: str = ""
    is_done: bool = False

    @property
    def is_refused(self) -> bool:
        return bool(self.problems) or bool(self.of(ImportState.REFUSED))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not any(item.state in APPLIED_STATES for item in self.items)

    def of(self, state: ImportState) -> list[ImportItem]:
        return [item for item in self.items if item.state == state]


def preview_file(text: str, user: ConfigUser, *, remove: bool = False) -> ImportResult:
    """Return what the file would do, without doing it."""
    if not shadow_tables.are_needed():
        with transaction.atomic():
            outcome = _run_import(text, user, remove)
            transaction.set_rollback(True)
        return outcome
    with shadow_tables.shadowed(_shadows()), shadow_tables.private_transaction():
        outcome = _run_import(text, user, remove)
        transaction.set_rollback(True)
    return outcome


def apply_file(
    text: str, user: ConfigUser, *, remove: bool = False, seal: str | None = None
) -> ImportResult:
    """Apply everything, or nothing if anything is rejected or has changed since the preview."""
    apply = _apply_prepared if shadow_tables.are_needed() else _apply_locked
    for _attempt in range(MAX_ATTEMPTS):
        # In both cases, somebody else has changed something at the same time.
        with suppress(IntegrityError, shadow_tables.ChangedMeanwhile):
            return apply(text, user, remove, seal)
    return preview_file(text, user, remove=remove)


def _apply_locked(text: str, user: ConfigUser, remove: bool, seal: str | None) -> ImportResult:
    with transaction.atomic():
        outcome = _run_import(text, user, remove)
        if not _is_applicable(outcome, seal):
            transaction.set_rollback(True)
            return outcome
        _record_import(outcome, user)
    return replace(outcome, is_done=True)


def _apply_prepared(
    text: str, user: ConfigUser, remove: bool, seal: str | None
) -> ImportResult:
    """Prepare everything in copies, so that the write transaction only copies rows."""
    shadows = _shadows()
    with shadow_tables.shadowed(shadows):
        outcome, later = shadow_tables.prepare(
            shadows, partial(_run_import, text, user, remove)
        )
        if not _is_applicable(outcome, seal):
            return outcome
        entries = list(AuditEntry.objects.select_related("person").order_by("number"))
        for entry in entries:
            entry.pk = None
        with transaction.atomic():
            shadow_tables.write(shadows)
            hash_chain.append(entries)
            _record_import(outcome, user)
            for _savepoints, callback, is_robust in later:
                transaction.on_commit(callback, robust=is_robust)
    return replace(outcome, is_done=True)


def _is_applicable(outcome: ImportResult, seal: str | None) -> bool:
    is_seen = seal is None or constant_time_compare(seal, outcome.seal)
    return is_seen and not outcome.is_refused and not outcome.is_empty


def _shadows() -> shadow_tables.Shadows:
    """Return the tables that an import changes."""
    tables: list[Any] = [AuditPerson, AuditHead, AuditEntry]
    for kind in KINDS.values():
        for model in (kind.model, *kind.parts):
            many = [field.remote_field.through for field in model._meta.many_to_many]
            tables += [model, *many]
    return shadow_tables.Shadows(
        tables=list(dict.fromkeys(tables)),
        appended=(AgentVersion, WorkflowVersion),
        # Entries form a chain, so they are added to its end when the import is written.
        unsaved=(AuditHead, AuditEntry),
        empty=(AuditEntry,),
    )


def _run_import(text: str, user: ConfigUser, remove: bool) -> ImportResult:
    file = parse_file(text)
    problems = list(file.problems)
    kind_imports = []
    for kind in [KINDS[key] for key in KINDS if key in file.sections]:
        if has_model_perm(user, "change", kind.model) and kind.is_open_to(user):
            kind_imports.append(_KindImport(kind, file, user, remove))
        else:
            message = _("You don't have permission to change %(kinds)s.")
            message %= {"kinds": kind.plural}
            problems.append(PlanProblem(message=message, line=file.lines[kind.key]))
    for step in (_KindImport.check, _KindImport.begin, _KindImport.finish):
        for kind_import in kind_imports:
            step(kind_import)
    items = tuple(item for kind_import in kind_imports for item in kind_import.items())
    # The seal of a preview changes with the text or the rows.
    previewed = [
        (item.kind.key, item.name, item.state, item.before, item.after) for item in items
    ]
    sealed = json.dumps([text, remove, user.pk, previewed], sort_keys=True)
    seal = salted_hmac(SALT, sealed, algorithm="sha256").hexdigest()
    return ImportResult(items=items, problems=tuple(problems), seal=seal)


class _KindImport:
    """All items of one kind, in the file and not."""

    def __init__(
        self, kind: ResourceKind, file: ConfigFile, user: ConfigUser, remove: bool
    ) -> None:
        self.kind = kind
        self.user = user
        self.remove = remove
        self.entries = file.sections[kind.key]
        self.rows = kind.named_rows(locked=True)
        self.before = kind.describe_all(self.rows)
        self.problems: dict[str, list[PlanProblem]] = {name: [] for name in self.entries}
        self.values_by_name: dict[str, ResourceValues] = {}

    def check(self) -> None:
        """Validate each entry; unchanged ones are skipped."""
        for name, entry in self.entries.items():
            row = self.rows.get(name)
            values = normalize_newlines(self.kind.complete(row, entry.values))
            if entry.mistake:
                issues = [ValidationIssue((), entry.mistake)]
            else:
                allowed_keys = self.kind.allowed_keys(values)
                issues = [
                    ValidationIssue((key,), unknown_key_message(key))
                    for key in values
                    if key not in allowed_keys
                ]
                issues += self.kind.mismatches(values)
            if row is None and not has_model_perm(self.user, "add", self.kind.model):
                message = _("You don't have permission to add this.")
                issues.append(ValidationIssue((), message))
            self._add_problems(entry, name, issues)
            if not self.problems[name]:
                self.values_by_name[name] = values

    def begin(self) -> None:
        """Create new rows before any is filled, because they can refer to each other."""
        changed = [name for name in self.values_by_name if self._is_changed(name)]
        existing = [name for name in changed if name in self.before]
        self.kind.save_first_versions(
            [self.rows[name] for name in (*existing, *self._disabled_names())]
        )
        for name in existing:
            self.kind.prepare(self.rows[name], self.values_by_name[name])
        for name, values in self.values_by_name.items():
            if name in self.before:
                continue
            try:
                self.rows[name] = self.kind.bare(name, values)
            except ValidationError as error:
                wrong = [ValidationIssue((), sentence) for sentence in error.messages]
                self._add_problems(self.entries[name], name, wrong)
        self.kind.insert(self.rows.values())

    def finish(self) -> None:
        changed = {
            name: self.rows[name]
            for name in self.values_by_name
            if name in self.rows and self._is_changed(name)
        }
        self.kind.prefetch([*changed.values()])
        for name, row in changed.items():
            wrong = self.kind.keep(row, self.values_by_name[name], self.user)
            self._add_problems(self.entries[name], name, wrong)
        for name in self._disabled_names():
            wrong = self.kind.disable(self.rows[name], self.user)
            self.problems[name] = [PlanProblem(message=issue.message) for issue in wrong]
            changed[name] = self.rows[name]
        self.kind.save_versions(
            [row for name, row in changed.items() if not self.problems[name]], self.user
        )

    def items(self) -> Iterator[ImportItem]:
        rows = self.kind.named_rows()
        new_values = self.kind.describe_all(rows)
        for name in sorted({*self.before, *self.entries}):
            row = rows.get(name)
            old = self.before.get(name, {})
            new = new_values.get(name, {})
            problems = self.problems.get(name, [])
            if problems:
                state = ImportState.REFUSED
            elif not old:
                state = ImportState.NEW
            elif name not in self.entries:
                state = ImportState.OFF if old != new else ImportState.LEFT
            else:
                state = ImportState.SAME if old == new else ImportState.CHANGED
            needs: list[str] = []
            if row and name in self.values_by_name:
                needs = self.kind.needs(row, self.values_by_name[name])
            yield ImportItem(
                kind=self.kind,
                name=name,
                state=state,
                before=old,
                after=new,
                problems=tuple(problems),
                needs=tuple(needs),
                pk=row.pk if row else None,
            )

    def _is_changed(self, name: str) -> bool:
        current = self.before.get(name)
        return current is None or self.kind.differs(current, self.values_by_name[name])

    def _disabled_names(self) -> list[str]:
        absent = [name for name in self.before if name not in self.entries]
        return [name for name in absent if self.remove and self.before[name].get("enabled")]

    def _add_problems(
        self, entry: FileEntry, name: str, issues: Iterable[ValidationIssue]
    ) -> None:
        self.problems[name] += [
            PlanProblem(
                message=issue.message, line=entry.find_line(issue.path), path=issue.path
            )
            for issue in issues
        ]


def _record_import(outcome: ImportResult, user: ConfigUser) -> None:
    details: ResourceValues = {}
    for state in APPLIED_STATES:
        if items := outcome.of(state):
            details[state] = {f"{i.kind.key}: {i.name}": i.changed_fields for i in items}
    audit.record(user_or_none(user), audit.CONFIG_IMPORTED, AUDIT_SUBJECT, **details)
