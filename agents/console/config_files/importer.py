"""A file taken over: what would become of each thing is found by doing it, and undoing it."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.translation import gettext as _

from agents.access import audit
from agents.engine.plans.yaml_reader import Problem

from .columns import plain, unknown
from .exporter import SUBJECT
from .kind import Kind, Objection, Values
from .kinds import KINDS
from .parser import Entry, File, parsed
from .permissions import account, may

SALT = "agents.console.config_files"


class State(StrEnum):
    NEW = "new"
    CHANGED = "changed"
    OFF = "off"  # not in the file, and to be switched off
    LEFT = "left"  # not in the file, and left alone
    SAME = "same"
    REFUSED = "refused"


DONE = (State.NEW, State.CHANGED, State.OFF)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """What becomes of one thing: what it is now, and what it would be."""

    kind: Kind
    name: str
    state: State
    before: Values
    after: Values
    problems: tuple[Problem, ...] = ()
    needs: tuple[str, ...] = ()
    pk: int | None = None

    @property
    def changed(self) -> list[str]:
        names = dict.fromkeys([*self.before, *self.after])
        return [name for name in names if self.before.get(name) != self.after.get(name)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    things: tuple[Thing, ...] = ()
    problems: tuple[Problem, ...] = ()
    seal: str = ""
    is_done: bool = False

    @property
    def is_refused(self) -> bool:
        return bool(self.problems) or bool(self.of(State.REFUSED))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not any(thing.state in DONE for thing in self.things)

    def of(self, state: State) -> list[Thing]:
        return [thing for thing in self.things if thing.state == state]


def look(text: str, user: Any, *, remove: bool = False) -> Outcome:
    """What the file would do; nothing of it stays done."""
    with transaction.atomic():
        outcome = _carried_out(text, user, remove)
        transaction.set_rollback(True)
    return outcome


def take(text: str, user: Any, *, remove: bool = False, seal: str | None = None) -> Outcome:
    """Do all of it, or nothing where anything is refused, or is not as it was sealed."""
    with transaction.atomic():
        try:
            with transaction.atomic():
                outcome = _carried_out(text, user, remove)
        except IntegrityError:  # somebody else made the same thing at this moment
            return look(text, user, remove=remove)
        is_seen = seal is None or constant_time_compare(seal, outcome.seal)
        if outcome.is_refused or outcome.is_empty or not is_seen:
            transaction.set_rollback(True)
            return outcome
        _record(outcome, user)
    return replace(outcome, is_done=True)


def _carried_out(text: str, user: Any, remove: bool) -> Outcome:
    file = parsed(text)
    kinds = [KINDS[key] for key in KINDS if key in file.things]
    refused = {kind: _forbidden(kind, user) for kind in kinds}
    allowed = [kind for kind in kinds if not refused[kind]]
    works = [_Work(kind, file, user, remove) for kind in allowed]
    for step in (_Work.check, _Work.begin, _Work.finish):
        for work in works:
            step(work)
    things = tuple(thing for work in works for thing in work.things())
    problems = (*file.problems, *_at(file, {k.key: s for k, s in refused.items() if s}))
    seal = _seal(text, user, remove, things)
    return Outcome(things=things, problems=problems, seal=seal)


class _Work:
    """All things of one kind that are in the file, and those that are not."""

    def __init__(self, kind: Kind, file: File, user: Any, remove: bool) -> None:
        self.kind, self.user, self.remove = kind, user, remove
        self.entries = file.things[kind.key]
        self.rows = kind.named_rows(locked=True)
        self.before = {name: kind.described(row) for name, row in self.rows.items()}
        self.problems: dict[str, list[Problem]] = {name: [] for name in self.entries}
        self.told: dict[str, Values] = {}

    def check(self) -> None:
        """What is told of each, as far as it has the right form; the same is left alone."""
        for name, entry in self.entries.items():
            row = self.rows.get(name)
            values = plain(self.kind.completed(row, entry.values))
            self._note(entry, name, _misformed(self.kind, entry, values))
            if row is None and not may(self.user, "add", self.kind.model):
                self._note(entry, name, [Objection((), _("You may not add any."))])
            if not self.problems[name]:
                self.told[name] = values

    def begin(self) -> None:
        """New rows are there before any is filled, because they may name each other."""
        for name, values in self.told.items():
            if name in self.before:
                if self._differs(name):
                    self.kind.prepare(self.rows[name], values)
                continue
            try:
                self.rows[name] = self.kind.bare(name, values)
            except ValidationError as error:
                wrong = [Objection((), sentence) for sentence in error.messages]
                self._note(self.entries[name], name, wrong)

    def finish(self) -> None:
        for name, values in self.told.items():
            if name in self.rows and self._differs(name):
                wrong = self.kind.keep(self.rows[name], values, self.user)
                self._note(self.entries[name], name, wrong)
        for name in self._others():
            if self.remove and self.before[name]["enabled"]:
                wrong = self.kind.switch_off(self.rows[name], self.user)
                self.problems[name] = [Problem(message=one.message) for one in wrong]

    def things(self) -> Iterator[Thing]:
        rows = self.kind.named_rows()
        for name in sorted({*self.before, *self.entries}):
            after = self.kind.described(rows[name]) if name in rows else {}
            yield self._thing(name, self.before.get(name, {}), after, rows.get(name))

    def _thing(self, name: str, before: Values, after: Values, row: Any) -> Thing:
        problems = self.problems.get(name, [])
        needs = self.kind.needs(row, self.told[name]) if row and name in self.told else []
        return Thing(
            kind=self.kind,
            name=name,
            state=State.REFUSED if problems else self._state(name, before, after),
            before=before,
            after=after,
            problems=tuple(problems),
            needs=tuple(needs),
            pk=row.pk if row else None,
        )

    def _state(self, name: str, before: Values, after: Values) -> State:
        if not before:
            return State.NEW
        if name not in self.entries:
            return State.OFF if before != after else State.LEFT
        return State.SAME if before == after else State.CHANGED

    def _differs(self, name: str) -> bool:
        before = self.before.get(name)
        return before is None or self.kind.differs(before, self.told[name])

    def _others(self) -> list[str]:
        return [name for name in self.before if name not in self.entries]

    def _note(self, entry: Entry, name: str, wrong: Iterable[Objection]) -> None:
        self.problems[name] += [
            Problem(message=one.message, line=entry.line_of(one.path), path=one.path)
            for one in wrong
        ]


def _misformed(kind: Kind, entry: Entry, values: Values) -> Iterator[Objection]:
    if entry.mistake:
        yield Objection((), entry.mistake)
        return
    known = kind.known(values)
    for key in values:
        if key not in known:
            yield Objection((key,), unknown(key))
    yield from kind.mismatches(values)


def _forbidden(kind: Kind, user: Any) -> str:
    if may(user, "change", kind.model):
        return ""
    return _("You may not change %(kinds)s.") % {"kinds": kind.plural}


def _at(file: File, sentences: dict[str, str]) -> Iterator[Problem]:
    for key, sentence in sentences.items():
        yield Problem(message=sentence, line=file.lines[key])


def _seal(text: str, user: Any, remove: bool, things: Iterable[Thing]) -> str:
    """Of all that was shown: another text, or rows that changed since, have another one."""
    shown = [(t.kind.key, t.name, t.state, t.before, t.after) for t in things]
    whole = json.dumps([text, remove, user.pk, shown], sort_keys=True)
    return salted_hmac(SALT, whole, algorithm="sha256").hexdigest()


def _record(outcome: Outcome, user: Any) -> None:
    told: Values = {}
    for state in DONE:
        if things := outcome.of(state):
            told[state] = {f"{t.kind.key}: {t.name}": t.changed for t in things}
    audit.record(account(user), audit.CONFIG_IMPORTED, SUBJECT, **told)
