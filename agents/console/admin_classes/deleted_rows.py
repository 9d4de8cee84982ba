"""Copies of what administrators delete, from which it can be restored.

Rows are copied column by column, not serialized by Django, whose JSON leaves out secrets. The
copy as a whole is encrypted, so a rotation of keys reaches the secrets in it.
"""

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, groupby
from typing import Any, cast

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.utils import NestedObjects
from django.contrib.auth import get_permission_codename
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.serializers.json import DjangoJSONEncoder
from django.db import IntegrityError, connections, models, router, transaction
from django.db.models.signals import post_save
from django.dispatch import Signal
from django.urls import reverse
from django.utils.functional import lazy
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.access import audit, recently_deleted
from agents.access.recently_deleted import CannotRestore, Restored
from agents.models import Deletion
from agents.models.secret import EncryptedTextField, EncryptedValue, UnreadableSecret

# Beyond this a copy takes longer than the deletion: the page says that it can't be undone.
MAX_ROWS = 20_000
MAX_REFERENCES = 1_000_000
PAGE_SIZE = 500
NAME_SUFFIX = "-restored"
# Without any of these, a row would be for everyone, apply to all agents or search everything.
RESTRICTIONS = {"groups", "agents", "collections"}

Values = dict[str, Any]
lazy_capfirst = lazy(capfirst, str)
RowKey = tuple[type[models.Model], Any]

# Sent with the rows of one model that are about to be deleted. Receivers return what else that
# changes: columns with their value before and the one that the deletion leaves.
about_to_delete = Signal()


class TooManyRows(Exception):
    """Raised when a deletion touches more rows than can be restored."""


class CopiedRows(recently_deleted.Kind):
    """What was deleted on one page of the console."""

    model = Deletion
    is_console = True
    deleted_at = "created_at"
    deleted_by = "user"

    def __init__(self, model_admin: Any) -> None:
        self.admin = model_admin
        self.name = model_admin.opts.label
        self.label = lazy_capfirst(model_admin.opts.verbose_name)
        self.plural = lazy_capfirst(model_admin.opts.verbose_name_plural)

    @property
    def list_url(self) -> str:
        opts = self.admin.opts
        return reverse(f"admin:{opts.app_label}_{opts.model_name}_changelist")

    def deleted(self) -> models.QuerySet[Deletion]:
        # The rows are large, and only needed to restore them.
        return Deletion.objects.filter(kind=self.name).defer("rows")

    def is_open_to(self, user: User) -> bool:
        permission = get_permission_codename("delete", self.admin.opts)
        return user.has_perm(f"{self.admin.opts.app_label}.{permission}")

    def restorable_by(self, user: User) -> models.QuerySet[Deletion]:
        pks = [row.pk for row in self.deleted() if self.admin.may_restore(user, row)]
        return self.deleted().filter(pk__in=pks)

    def is_name_taken(self, row: Deletion) -> bool:
        return bool(row.name) and is_name_taken(row)

    def new_name(self, row: Deletion) -> str:
        can_rename = self.admin.can_rename_deleted and self.is_name_taken(row)
        return free_name(row) if can_rename else ""

    def restore(self, row: Deletion, user: User, name: str = "") -> Restored:
        restored, is_disabled, left_out = restore(row, name)
        audit.record(user, audit.RESTORED, restored, **self.admin.audit_details(restored))
        warnings = []
        if is_disabled:
            sentence = _(
                "“%(name)s” is disabled because all groups, agents or collections it was "
                "limited to were deleted. Check who can use it, then enable it."
            )
            warnings.append(sentence % {"name": restored})
        if left_out:
            sentence = ngettext(
                "%(count)d row that belonged to “%(name)s” wasn't restored, because what it "
                "refers to no longer exists.",
                "%(count)d rows that belonged to “%(name)s” weren't restored, because what "
                "they refer to no longer exists.",
                left_out,
            )
            warnings.append(sentence % {"count": left_out, "name": restored})
        return Restored(name=str(restored), url=self.list_url, warnings=tuple(warnings))

    def erase(self, row: Deletion) -> None:
        """Delete a copy for good, with what the row had outside the database."""
        self.admin.erase_deleted(row)
        row.delete()

    @transaction.atomic
    def erase_now(self, row: Deletion, user: User) -> None:
        # The audit log names the row, whose values are only in the copy.
        deleted_row = apps.get_model(row.kind)()
        deleted_row.pk = row.object_id
        details = {"name": row.name} if row.name else {}
        self.erase(row)
        audit.record(user, audit.DELETED_FOR_GOOD, deleted_row, **details)


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
def restore(deletion: Deletion, name: str = "") -> tuple[models.Model, bool, int]:
    """Insert the rows as they were, without those that refer to something deleted since.

    `name` replaces a name that something else has now. Returns the row, whether it is disabled
    because nothing is left of whom or what it was for, and how many rows were left out.
    """
    copied = _load(deletion)
    copies = [_row(values) for values in copied["rows"]]
    row: Any = copies[0]
    if name:
        _rename(row, name)
    elif is_name_taken(deletion):
        raise CannotRestore(_("This name is already in use. Enter another one."))
    owner: Any = admin.site.get_model_admin(type(row))
    copies = owner.rows_to_restore(deletion, copies)
    rows = _without_missing(copies)
    if row not in rows:
        raise CannotRestore(_("It belongs to something that no longer exists."))
    is_disabled = False
    for restricted in _without_restriction(copies, rows):
        if not hasattr(restricted, "enabled"):
            raise CannotRestore(
                _("All groups, agents or collections it was limited to were deleted.")
            )
        restricted.enabled = False
        is_disabled = True
    if getattr(row, "is_default", False):
        row.is_default = not type(row)._base_manager.filter(is_default=True).exists()
    saved = _insert(rows)
    for reference in copied["references"]:
        manager = apps.get_model(reference["model"])._base_manager
        untouched = {reference["field"]: reference["left"]}
        for start in range(0, len(reference["pks"]), PAGE_SIZE):
            pks = reference["pks"][start : start + PAGE_SIZE]
            manager.filter(pk__in=pks, **untouched).update(
                **{reference["field"]: reference["value"]}
            )
    deletion.delete()
    return row, is_disabled, len(copies) - saved


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


# Personal data


def rows_of(user: User) -> Iterator[models.Model]:
    """Yield the deleted rows that belong to a user."""
    for _deletion, copied in _readable_copies():
        for values in copied["rows"]:
            if _user_columns(values, user):
                yield _row(values)


def erase_person(
    user: User,
    columns: Mapping[type[models.Model], tuple[str, ...]],
    redact: Callable[[Any], Any],
) -> int:
    """Erase a user's rows and name from the copies, and their text from these columns."""
    changed = 0
    for deletion, copied in _readable_copies():
        original = json.dumps(copied)
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
            recently_deleted.kinds[deletion.kind].erase(deletion)
            changed += 1
        elif json.dumps({**copied, "rows": rows}) != original:
            deletion.rows = json.dumps({**copied, "rows": rows})
            deletion.save(update_fields=["rows"])
            changed += 1
    return changed


def count_matching(matches: Callable[[str], bool]) -> int:
    """Return how many copies contain a text."""
    copies = (copied for _deletion, copied in _readable_copies())
    return sum(matches(json.dumps(copied, ensure_ascii=False)) for copied in copies)


def _readable_copies() -> Iterator[tuple[Deletion, Values]]:
    """Yield all copies that can be read, one at a time because they may be large."""
    for pk in list(Deletion.objects.order_by("pk").values_list("pk", flat=True)):
        deletion = Deletion.objects.filter(pk=pk).first()
        if deletion is None:
            continue
        try:
            copied = _load(deletion)
        except CannotRestore:
            continue
        yield deletion, copied


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
    side_effects: list[Values] = []
    for _receiver, changed in about_to_delete.send(type(rows[0]), rows=rows) if rows else ():
        side_effects += cast(list[Values], changed)
    for row in rows:
        collector = NestedObjects(using=router.db_for_write(type(row)), origin=[row])
        collector.collect([row])
        deleted = {(type(row), row.pk): row}
        deleted |= {
            (type(member), member.pk): member for member in chain(*collector.data.values())
        }
        references = [*_references(collector), *side_effects]
        is_small = len(deleted) <= MAX_ROWS
        if (
            not is_small
            or sum(len(reference["pks"]) for reference in references) > MAX_REFERENCES
        ):
            raise TooManyRows
        copied = [_values(member) for member in deleted.values()]
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
    """Return the row as JSON can hold it; `_row` is the way back."""
    fields: Values = {}
    for column in row._meta.concrete_fields:
        value = getattr(row, column.attname)
        if isinstance(value, EncryptedValue):
            try:
                value = {"secret": value.reveal()}
            except UnreadableSecret:
                value = {"token": value.token}  # its key may return
        elif isinstance(value, bytes | memoryview):
            value = base64.b64encode(bytes(value)).decode()
        elif isinstance(column, models.FileField):
            value = value.name
        fields[column.attname] = value
    return {"model": row._meta.label, "fields": fields}


def _load(deletion: Deletion) -> Values:
    try:
        return json.loads(deletion.rows.reveal())
    except UnreadableSecret as error:
        raise CannotRestore(str(error)) from error


def _row(values: Values) -> models.Model:
    model = apps.get_model(values["model"])
    row = model()
    for column in model._meta.concrete_fields:
        if column.attname not in values["fields"]:
            continue
        value = values["fields"][column.attname]
        if isinstance(column, EncryptedTextField):
            is_token = "token" in value
            value = (
                EncryptedValue(value["token"], column.empty) if is_token else value["secret"]
            )
        elif isinstance(column, models.BinaryField) and value is not None:
            value = base64.b64decode(value)
        elif value is not None:
            value = column.to_python(value)
        setattr(row, column.attname, value)
    return row


# Restoring


def _rename(row: models.Model, name: str) -> None:
    column = name_field(type(row))
    if column is None:
        return
    setattr(row, column.attname, name)
    other_columns = {field.name for field in row._meta.get_fields()} - {column.name}
    try:
        row.clean_fields(exclude=other_columns)
        row.clean()
    except ValidationError as error:
        raise CannotRestore(" ".join(error.messages)) from error
    if type(row)._base_manager.filter(**{column.name: name}).exists():
        raise CannotRestore(_("This name is already in use. Enter another one."))


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
    copied_keys = {_key(row) for row in copies}
    referenced: dict[type[models.Model], set[Any]] = {}
    for row in copies:
        for _column, (model, pk) in _targets(row):
            if (model, pk) not in copied_keys:
                referenced.setdefault(model, set()).add(pk)
    missing: set[RowKey] = set()
    for model, pks in referenced.items():
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
            is_link_left = links.get((source, row.pk), [])
            if relation.name in RESTRICTIONS and is_link_left and not any(is_link_left):
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
                raise CannotRestore(
                    _(
                        "It conflicts with an item that was added since. "
                        "Change or delete that item, then try again."
                    )
                ) from error
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
