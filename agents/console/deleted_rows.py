"""Copies of what administrators delete, from which it can be restored for 30 days.

Rows are copied column by column, not serialized by Django, whose JSON leaves out secrets. The
copy as a whole is encrypted, so a rotation of keys reaches the secrets in it.
"""

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, groupby
from typing import Any, cast

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.utils import NestedObjects
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.serializers.json import DjangoJSONEncoder
from django.db import IntegrityError, connections, models, router, transaction
from django.db.models.signals import post_save
from django.dispatch import Signal
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.models import Deletion
from agents.models.secret import EncryptedTextField, EncryptedValue, UnreadableSecret

KEPT_FOR = timedelta(days=30)
# Beyond this a copy takes longer than the deletion: the page says that it can't be undone.
MAX_ROWS = 20_000
MAX_REFERENCES = 1_000_000
PAGE_SIZE = 500
NAME_SUFFIX = "-restored"
# Without any of these, a row would be for everyone, apply to all agents or search everything.
RESTRICTIONS = {"groups", "agents", "collections"}

Values = dict[str, Any]
RowKey = tuple[type[models.Model], Any]

# Sent with the rows of one model that are about to be deleted. Receivers return what else that
# changes: columns with their value before and the one that the deletion leaves.
about_to_delete = Signal()


class TooManyRows(Exception):
    """Raised when a deletion touches more rows than can be restored."""


class CannotRestore(Exception):
    """Raised when a deleted row can't be restored; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What was restored; it is disabled if nothing is left of whom or what it was for."""

    row: models.Model
    is_disabled: bool
    left_out: int


def recent() -> models.QuerySet[Deletion]:
    """Return the deletions that can be undone, newest first."""
    return Deletion.objects.filter(created_at__gte=timezone.now() - KEPT_FOR).order_by("-pk")


def is_possible(rows: list[models.Model]) -> bool:
    """Whether deleting these rows can be undone."""
    try:
        for _row_and_copy in _copies(rows):
            pass
    except TooManyRows:
        return False
    return True


def remember(user: Any, rows: list[models.Model], *, has_name: bool) -> list[Deletion]:
    """Copy what is about to be deleted, so that each row can be restored by itself."""
    copies = [(row, json.dumps(copy, cls=DjangoJSONEncoder)) for row, copy in _copies(rows)]
    return [
        Deletion.objects.create(
            user=user,
            kind=row._meta.label,
            object_id=str(row.pk),
            name=str(row)[:200] if has_name else "",
            rows=copied,
        )
        for row, copied in copies
    ]


def rules_to_disable(
    rules: type[models.Model], deleted: Iterable[models.Model]
) -> list[Values]:
    """Return the rules for these agents only, which their deletion disables."""
    agents = {row.pk for row in deleted}
    theirs = rules._default_manager.filter(enabled=True, agents__in=agents).distinct()
    pks = [
        rule.pk
        for rule in cast(Iterable[Any], theirs.prefetch_related("agents"))
        if {agent.pk for agent in rule.agents.all()} <= agents
    ]
    change = {"field": "enabled", "value": True, "left": False}
    return [{"model": rules._meta.label, "pks": pks, **change}] if pks else []


def read(deletion: Deletion) -> list[models.Model]:
    """Return the deleted row, and what was deleted with it, as unsaved rows."""
    return [_row(values) for values in _load(deletion)["rows"]]


@transaction.atomic
def restore(deletion: Deletion, name: str = "") -> Restored:
    """Insert the rows as they were, without those that refer to something deleted since.

    `name` replaces a name that something else has now.
    """
    copied = _load(deletion)
    copies = [_row(values) for values in copied["rows"]]
    row: Any = copies[0]
    if name:
        _rename(row, name)
    elif is_name_taken(deletion):
        raise CannotRestore(_("Something else has this name now. Enter another one."))
    owner: Any = admin.site.get_model_admin(type(row))
    copies = owner.rows_to_restore(deletion, copies)
    rows = _without_missing(copies)
    if row not in rows:
        raise CannotRestore(_("It belongs to something that no longer exists."))
    is_disabled = False
    for other in _without_restriction(copies, rows):
        if not hasattr(other, "enabled"):
            raise CannotRestore(_("What it was limited to no longer exists."))
        other.enabled = False
        is_disabled = True
    if getattr(row, "is_default", False):
        row.is_default = not type(row)._base_manager.filter(is_default=True).exists()
    saved = _insert(rows)
    for reference in copied["references"]:
        others = apps.get_model(reference["model"])._base_manager
        untouched = {reference["field"]: reference["left"]}
        for start in range(0, len(reference["pks"]), PAGE_SIZE):
            pks = reference["pks"][start : start + PAGE_SIZE]
            others.filter(pk__in=pks, **untouched).update(
                **{reference["field"]: reference["value"]}
            )
    deletion.delete()
    return Restored(row=row, is_disabled=is_disabled, left_out=len(copies) - saved)


def is_name_taken(deletion: Deletion) -> bool:
    """Whether something else has the name of a deleted row now."""
    model = apps.get_model(deletion.kind)
    column = name_field(model)
    rows = model._base_manager
    return column is not None and rows.filter(**{column.name: deletion.name}).exists()


def free_name(deletion: Deletion) -> str:
    """Return a name like the row's own that nothing else has."""
    model = apps.get_model(deletion.kind)
    column = name_field(model)
    if column is None:
        return deletion.name
    number = 1
    while True:
        suffix = NAME_SUFFIX if number == 1 else f"{NAME_SUFFIX}-{number}"
        name = deletion.name[: (column.max_length or 200) - len(suffix)] + suffix
        if not model._base_manager.filter(**{column.name: name}).exists():
            return name
        number += 1


def name_field(model: type[models.Model]) -> models.CharField | None:
    """Return the column with a row's unique name."""
    for column in model._meta.concrete_fields:
        if isinstance(column, models.CharField) and column.unique and not column.primary_key:
            return column
    return None


def erase(deletion: Deletion) -> None:
    """Delete a copy for good, with what the row had outside the database."""
    model = apps.get_model(deletion.kind)
    model_admin: Any = admin.site.get_model_admin(model)
    model_admin.erase_deleted(deletion)
    deletion.delete()


def erase_old(now: datetime) -> int:
    """Delete what can't be restored any more; return how many rows that were."""
    old = list(Deletion.objects.filter(created_at__lt=now - KEPT_FOR))
    for deletion in old:
        erase(deletion)
    return len(old)


# Personal data


def rows_of(user: User) -> Iterator[models.Model]:
    """Yield the deleted rows that belong to a user."""
    for deletion in _all():
        for values in _load(deletion)["rows"]:
            if _user_columns(values, user):
                yield _row(values)


def erase_person(
    user: User,
    columns: Mapping[type[models.Model], tuple[str, ...]],
    redact: Callable[[Any], Any],
) -> int:
    """Erase a user's rows and name from the copies, and their text from these columns."""
    changed = 0
    for deletion in _all():
        copied = _load(deletion)
        before = json.dumps(copied)
        rows = []
        for values in copied["rows"]:
            model = apps.get_model(values["model"])
            theirs = _user_columns(values, user)
            if all(column.remote_field.on_delete is models.SET_NULL for column in theirs):
                values["fields"] |= {column.attname: None for column in theirs}
                for name in columns.get(model, ()):
                    values["fields"][name] = redact(values["fields"].get(name))
                rows.append(values)
        if not rows or rows[0] is not copied["rows"][0]:
            erase(deletion)
            changed += 1
        elif json.dumps({**copied, "rows": rows}) != before:
            deletion.rows = json.dumps({**copied, "rows": rows})
            deletion.save(update_fields=["rows"])
            changed += 1
    return changed


def count_matching(matches: Callable[[str], bool]) -> int:
    """Return how many copies contain a text."""
    texts = (json.dumps(_load(deletion), ensure_ascii=False) for deletion in _all())
    return sum(map(matches, texts))


def _all() -> Iterator[Deletion]:
    """Yield all copies that can be read, one at a time because they may be large."""
    for pk in list(Deletion.objects.order_by("pk").values_list("pk", flat=True)):
        deletion = Deletion.objects.filter(pk=pk).first()
        if deletion is not None and _is_readable(deletion):
            yield deletion


def _user_columns(values: Values, user: User) -> list[Any]:
    """Return the columns of a copied row that refer to this user."""
    columns = apps.get_model(values["model"])._meta.concrete_fields
    return [
        column
        for column in columns
        if column.related_model is User and values["fields"].get(column.attname) == user.pk
    ]


# Copies


def _copies(rows: list[models.Model]) -> Iterator[tuple[models.Model, Values]]:
    """Yield rows with copies of what is deleted with each, and references set to null."""
    others: list[Values] = []
    for _receiver, changed in about_to_delete.send(type(rows[0]), rows=rows) if rows else ():
        others += cast(list[Values], changed)
    for row in rows:
        collector = NestedObjects(using=router.db_for_write(type(row)), origin=[row])
        collector.collect([row])
        deleted = {(type(row), row.pk): row}
        deleted |= {(type(part), part.pk): part for part in chain(*collector.data.values())}
        references = [*_references(collector), *others]
        is_small = len(deleted) <= MAX_ROWS
        if not is_small or sum(len(one["pks"]) for one in references) > MAX_REFERENCES:
            raise TooManyRows
        copied = [_values(part) for part in deleted.values()]
        yield row, {"rows": copied, "references": references}


def _references(collector: NestedObjects) -> Iterator[Values]:
    for (column, _new_value), batches in collector.field_updates.items():
        by_value: dict[Any, list[Any]] = {}
        for batch in batches:
            # A list or a queryset, whatever the stubs say.
            rows: Any = batch
            pairs: Iterable[Any]
            if isinstance(rows, models.QuerySet):
                pairs = rows.values_list("pk", column.attname)[: MAX_REFERENCES + 1]
            else:
                pairs = [(row.pk, getattr(row, column.attname)) for row in rows]
            for pk, value in pairs:
                by_value.setdefault(value, []).append(pk)
        change = {"model": column.model._meta.label, "field": column.attname, "left": None}
        yield from ({**change, "value": value, "pks": pks} for value, pks in by_value.items())


def _values(row: models.Model) -> Values:
    fields = {column.attname: _value(row, column) for column in row._meta.concrete_fields}
    return {"model": row._meta.label, "fields": fields}


def _value(row: models.Model, column: Any) -> Any:
    value = getattr(row, column.attname)
    if isinstance(value, EncryptedValue):
        try:
            return {"secret": value.reveal()}
        except UnreadableSecret:
            return {"token": value.token}  # its key may return
    if isinstance(value, bytes | memoryview):
        return base64.b64encode(bytes(value)).decode()
    return value.name if isinstance(column, models.FileField) else value


def _load(deletion: Deletion) -> Values:
    try:
        return json.loads(deletion.rows.reveal())
    except UnreadableSecret as error:
        raise CannotRestore(str(error)) from error


def _is_readable(deletion: Deletion) -> bool:
    try:
        _load(deletion)
    except CannotRestore:
        return False
    return True


def _row(values: Values) -> models.Model:
    model = apps.get_model(values["model"])
    row = model()
    for column in model._meta.concrete_fields:
        if column.attname in values["fields"]:
            setattr(row, column.attname, _python(column, values["fields"][column.attname]))
    return row


def _python(column: Any, value: Any) -> Any:
    if isinstance(column, EncryptedTextField):
        is_token = "token" in value
        return EncryptedValue(value["token"], column.empty) if is_token else value["secret"]
    if isinstance(column, models.BinaryField) and value is not None:
        return base64.b64decode(value)
    return value if value is None else column.to_python(value)


# Restoring


def _rename(row: models.Model, name: str) -> None:
    column = name_field(type(row))
    if column is None:
        return
    setattr(row, column.attname, name)
    others = {other.name for other in row._meta.get_fields()} - {column.name}
    try:
        row.clean_fields(exclude=others)
        row.clean()
    except ValidationError as error:
        raise CannotRestore(" ".join(error.messages)) from error
    if type(row)._base_manager.filter(**{column.name: name}).exists():
        raise CannotRestore(_("This name is taken, too. Enter another one."))


def _key(row: models.Model) -> RowKey:
    return type(row), row.pk


def _targets(row: models.Model) -> Iterator[tuple[Any, RowKey]]:
    """Yield the row's columns that refer to others, and what they refer to."""
    for column in row._meta.concrete_fields:
        value = getattr(row, column.attname)
        if column.related_model is not None and value is not None:
            yield column, (column.related_model, value)


def _without_missing(copies: list[models.Model]) -> list[models.Model]:
    """Return the rows without those that refer to a row that is gone."""
    own = {_key(row) for row in copies}
    wanted: dict[type[models.Model], set[Any]] = {}
    for row in copies:
        for _column, (model, pk) in _targets(row):
            if (model, pk) not in own:
                wanted.setdefault(model, set()).add(pk)
    missing: set[RowKey] = set()
    for model, pks in wanted.items():
        ordered = sorted(pks)
        for start in range(0, len(ordered), PAGE_SIZE):
            batch = ordered[start : start + PAGE_SIZE]
            present = set(model._base_manager.filter(pk__in=batch).values_list("pk", flat=True))
            missing |= {(model, pk) for pk in batch if pk not in present}
    rows = list(copies)
    while missing:
        gone: set[RowKey] = set()
        for row in rows:
            for column, target in _targets(row):
                if target in missing and column.remote_field.on_delete is models.SET_NULL:
                    setattr(row, column.attname, None)
                elif target in missing:
                    gone.add(_key(row))
        rows = [row for row in rows if _key(row) not in gone]
        missing = gone
    return rows


def _without_restriction(copies: list[models.Model], rows: list[models.Model]) -> Iterator[Any]:
    """Yield rows that were limited to groups, agents or collections, of which none is left."""
    remaining = {_key(row) for row in rows}
    links: dict[Any, list[bool]] = {}
    for row in copies:
        for column, target in _targets(row):
            if type(row)._meta.auto_created:
                links.setdefault((column, target[1]), []).append(_key(row) in remaining)
    for row in rows:
        for relation in row._meta.many_to_many:
            through: Any = relation.remote_field.through
            source = through._meta.get_field(relation.m2m_field_name())
            found = links.get((source, row.pk), [])
            if relation.name in RESTRICTIONS and found and not any(found):
                yield row


def _insert(rows: list[models.Model]) -> int:
    """Insert the rows; return how many. Those whose place is taken are left out."""
    # Most often none is, and a savepoint takes longer than a row.
    with suppress(IntegrityError), transaction.atomic():
        for model, group in groupby(rows, type):
            _insert_many(model, list(group))
        return len(rows)
    lost: set[RowKey] = set()
    for position, row in enumerate(rows):
        try:
            with transaction.atomic():
                row.save_base(raw=True, force_insert=True)
        except IntegrityError as error:
            if position == 0:
                raise CannotRestore(_("Something else has taken its place.")) from error
            lost.add(_key(row))
    saved = [row for row in rows if _key(row) not in lost]
    while dependents := [
        row for row in saved if any(target in lost for _column, target in _targets(row))
    ]:
        for row in dependents:
            type(row)._base_manager.filter(pk=row.pk).delete()
        lost |= {_key(row) for row in dependents}
        saved = [row for row in saved if _key(row) not in lost]
    return len(saved)


def _insert_many(model: type[models.Model], rows: list[models.Model]) -> None:
    """Insert rows of one kind as they were; `bulk_create` would set their times again."""
    using = router.db_for_write(model)
    columns = [column for column in model._meta.concrete_fields if not column.generated]
    size = connections[using].ops.bulk_batch_size(columns, rows)
    manager: Any = model._base_manager
    for start in range(0, len(rows), size):
        batch = rows[start : start + size]
        manager._insert(batch, fields=columns, using=using, raw=True)
    for row in rows:
        row._state.adding = False
        row._state.db = using
        post_save.send(model, instance=row, created=True, raw=True, using=using)
