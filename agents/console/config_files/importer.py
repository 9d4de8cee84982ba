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

SALT = "agents.console.config_files"
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
    things: tuple[ImportItem, ...] = ()
    problems: tuple[PlanProblem, ...] = ()
    seal: str = ""
    is_done: bool = False

    @property
    def is_refused(self) -> bool:
        return bool(self.problems) or bool(self.of(ImportState.REFUSED))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not any(thing.state in APPLIED_STATES for thing in self.things)

    def of(self, state: ImportState) -> list[ImportItem]:
        return [thing for thing in self.things if thing.state == state]


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
    kinds = [KINDS[key] for key in KINDS if key in file.things]
    refused = {kind: _permission_problem(kind, user) for kind in kinds}
    allowed = [kind for kind in kinds if not refused[kind]]
    kind_imports = [_KindImport(kind, file, user, remove) for kind in allowed]
    for step in (_KindImport.check, _KindImport.begin, _KindImport.finish):
        for kind_import in kind_imports:
            step(kind_import)
    things = tuple(thing for kind_import in kind_imports for thing in kind_import.things())
    problems = (
        *file.problems,
        *_section_problems(file, {k.key: s for k, s in refused.items() if s}),
    )
    seal = _seal(text, user, remove, things)
    return ImportResult(things=things, problems=problems, seal=seal)


class _KindImport:
    """All items of one kind, in the file and not."""

    def __init__(
        self, kind: ResourceKind, file: ConfigFile, user: ConfigUser, remove: bool
    ) -> None:
        self.kind, self.user, self.remove = kind, user, remove
        self.entries = file.things[kind.key]
        self.rows = kind.named_rows(locked=True)
        self.before = kind.describe_all(self.rows)
        self.problems: dict[str, list[PlanProblem]] = {name: [] for name in self.entries}
        self.values_by_name: dict[str, ResourceValues] = {}

    def check(self) -> None:
        """Validate each entry; unchanged ones are skipped."""
        for name, entry in self.entries.items():
            row = self.rows.get(name)
            values = normalize_newlines(self.kind.complete(row, entry.values))
            self._add_problems(entry, name, _shape_issues(self.kind, entry, values))
            if row is None and not has_model_perm(self.user, "add", self.kind.model):
                self._add_problems(
                    entry,
                    name,
                    [ValidationIssue((), _("You don't have permission to add this."))],
                )
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
            self.problems[name] = [PlanProblem(message=one.message) for one in wrong]
            changed[name] = self.rows[name]
        self.kind.save_versions(
            [row for name, row in changed.items() if not self.problems[name]], self.user
        )

    def things(self) -> Iterator[ImportItem]:
        rows = self.kind.named_rows()
        after = self.kind.describe_all(rows)
        for name in sorted({*self.before, *self.entries}):
            before = self.before.get(name, {})
            yield self._build_item(name, before, after.get(name, {}), rows.get(name))

    def _build_item(
        self, name: str, before: ResourceValues, after: ResourceValues, row: Any
    ) -> ImportItem:
        problems = self.problems.get(name, [])
        needs = (
            self.kind.needs(row, self.values_by_name[name])
            if row and name in self.values_by_name
            else []
        )
        return ImportItem(
            kind=self.kind,
            name=name,
            state=ImportState.REFUSED if problems else self._state(name, before, after),
            before=before,
            after=after,
            problems=tuple(problems),
            needs=tuple(needs),
            pk=row.pk if row else None,
        )

    def _state(self, name: str, before: ResourceValues, after: ResourceValues) -> ImportState:
        if not before:
            return ImportState.NEW
        if name not in self.entries:
            return ImportState.OFF if before != after else ImportState.LEFT
        return ImportState.SAME if before == after else ImportState.CHANGED

    def _is_changed(self, name: str) -> bool:
        before = self.before.get(name)
        return before is None or self.kind.differs(before, self.values_by_name[name])

    def _disabled_names(self) -> list[str]:
        absent = [name for name in self.before if name not in self.entries]
        return [name for name in absent if self.remove and self.before[name].get("enabled")]

    def _add_problems(
        self, entry: FileEntry, name: str, wrong: Iterable[ValidationIssue]
    ) -> None:
        self.problems[name] += [
            PlanProblem(message=one.message, line=entry.find_line(one.path), path=one.path)
            for one in wrong
        ]


def _shape_issues(
    kind: ResourceKind, entry: FileEntry, values: ResourceValues
) -> Iterator[ValidationIssue]:
    if entry.mistake:
        yield ValidationIssue((), entry.mistake)
        return
    known = kind.allowed_keys(values)
    for key in values:
        if key not in known:
            yield ValidationIssue((key,), unknown_key_message(key))
    yield from kind.mismatches(values)


def _permission_problem(kind: ResourceKind, user: ConfigUser) -> str:
    if has_model_perm(user, "change", kind.model) and kind.is_open_to(user):
        return ""
    return _("You don't have permission to change %(kinds)s.") % {"kinds": kind.plural}


def _section_problems(file: ConfigFile, sentences: dict[str, str]) -> Iterator[PlanProblem]:
    for key, sentence in sentences.items():
        yield PlanProblem(message=sentence, line=file.lines[key])


def _seal(text: str, user: ConfigUser, remove: bool, things: Iterable[ImportItem]) -> str:
    """Return a seal over the preview, which changes with the text or the rows."""
    previewed = [(t.kind.key, t.name, t.state, t.before, t.after) for t in things]
    whole = json.dumps([text, remove, user.pk, previewed], sort_keys=True)
    return salted_hmac(SALT, whole, algorithm="sha256").hexdigest()


def _record_import(outcome: ImportResult, user: ConfigUser) -> None:
    details: ResourceValues = {}
    for state in APPLIED_STATES:
        if things := outcome.of(state):
            details[state] = {f"{t.kind.key}: {t.name}": t.changed_fields for t in things}
    audit.record(user_or_none(user), audit.CONFIG_IMPORTED, AUDIT_SUBJECT, **details)
