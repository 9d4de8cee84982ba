"""One kind of item: how it is described in a file, and how it is imported."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db import models
from django.forms import modelform_factory

from agents.db.fast_writes import concrete_field
from agents.engine.plans import ValuePath

from .columns import ConfigColumn, editable_columns
from .permissions import ConfigUser

ResourceValues = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ValidationIssue:
    """A problem with an item, and the part it concerns."""

    path: ValuePath
    message: str


class ConfigForm(forms.ModelForm):
    """The form of a row's page, for many rows in a row: it leaves out what can't differ."""

    named: str

    def __init__(
        self,
        *args: Any,
        user: ConfigUser,
        checked: Collection[str] | None = None,
        **options: Any,
    ) -> None:
        self.user = user
        self.checked = checked
        if checked is not None:  # each field takes a while to copy, and to clean
            own = {*checked, self.named, *self.declared_fields}
            fields = self.base_fields.items()
            vars(self)["base_fields"] = {name: field for name, field in fields if name in own}
        super().__init__(*args, **options)

    def validate_unique(self) -> None:
        # A row has its name already, so no other does.
        excluded = {*self._get_validation_exclusions(), self.named}  # type: ignore[attr-defined]
        try:
            self.instance.validate_unique(exclude=excluded)
        except ValidationError as error:
            self._update_errors(error)  # type: ignore[attr-defined]

    def _clean_fields(self) -> None:
        super()._clean_fields()  # type: ignore[misc]
        for field in self.instance._meta.many_to_many:
            chosen = self.cleaned_data.get(field.name)
            if chosen is not None and chosen.query.is_empty():
                self.cleaned_data[field.name] = []  # quicker than asking an empty query

    def save(self, commit: bool = True) -> Any:
        if self.checked is None:
            return super().save(commit)
        columns = [field.name for field in self.instance._meta.concrete_fields]
        names = [name for name in columns if name in self.checked]
        self.instance.save(update_fields=names)
        self._save_m2m()
        return self.instance

    def _save_m2m(self) -> None:
        for field in self.instance._meta.many_to_many:
            chosen = self.cleaned_data.get(field.name)
            if chosen is not None and {*chosen} == {*self.initial.get(field.name, ())}:
                del self.cleaned_data[field.name]
        super()._save_m2m()  # type: ignore[misc]


@cache
def _form_class(
    base: type[forms.ModelForm],
    model: type[models.Model],
    named: str,
    names: tuple[str, ...],
    json_class: type[forms.Field] | None,
) -> type[ConfigForm]:
    """Return the class of a page's form with these fields; making one is slow."""
    fields = [model._meta.get_field(name) for name in names]
    of_json = [field.name for field in fields if isinstance(field, models.JSONField)]
    classes = dict.fromkeys(of_json, json_class) if json_class else {}
    combined_class = type("Form", (ConfigForm, base), {"named": named})
    form_class = modelform_factory(
        model, combined_class, [named, *names], field_classes=classes
    )
    return cast(type[ConfigForm], form_class)


class ResourceKind:
    """Rows with a name, described by their columns and validated by their form."""

    named = "name"
    only_first: tuple[str, ...] = ()  # set on creation, never changed
    parts: tuple[type[models.Model], ...] = ()  # other rows that are saved with an item

    def __init__(self, key: str, model: type[models.Model]) -> None:
        self.key = key
        self.model = model

    @property
    def label(self) -> str:
        return str(self.model._meta.verbose_name)

    @property
    def plural(self) -> str:
        return str(self.model._meta.verbose_name_plural)

    def is_open_to(self, user: ConfigUser) -> bool:
        """Whether this user's scope includes all rows; permissions are checked besides."""
        return True

    def rows(self) -> models.QuerySet[Any]:
        return self.model._default_manager.order_by(self.named)

    def named_rows(self, *, locked: bool = False) -> dict[str, Any]:
        rows = self.rows()
        if locked:
            # Runs refer to these rows and must not wait for an import.
            rows = rows.select_for_update(of=("self",), no_key=True)
        return {getattr(row, self.named): row for row in rows}

    def complete(self, row: Any, values: ResourceValues) -> ResourceValues:
        """Return the values, completed with what is needed from the row."""
        return values

    def columns(self, values: ResourceValues) -> list[ConfigColumn]:
        """Return the columns of an item with these values."""
        return editable_columns(self.model, without=(self.named,))

    def describe(self, row: Any) -> ResourceValues:
        columns = self.columns(self.complete(row, {}))
        return {column.name: column.of(row) for column in columns}

    def describe_all(self, rows: dict[str, Any]) -> dict[str, ResourceValues]:
        """Describe rows by their names."""
        return {name: self.describe(row) for name, row in rows.items()}

    def allowed_keys(self, values: ResourceValues) -> list[str]:
        """Return the known keys."""
        return [column.name for column in self.columns(values)]

    def mismatches(self, values: ResourceValues) -> Iterator[ValidationIssue]:
        """Yield values of the wrong type, before any lookup."""
        for column in self.columns(values):
            if column.name in values and (why := column.mismatch(values[column.name])):
                yield ValidationIssue((column.name,), why)

    def differs(self, current: ResourceValues, values: ResourceValues) -> bool:
        """Whether any value differs from the row."""
        columns = [column for column in self.columns(values) if column.name in values]
        return any(c.differs(current.get(c.name), values[c.name]) for c in columns)

    def prepare(self, row: Any, values: ResourceValues) -> None:
        """Prepare a row before any of its kind is changed."""

    def bare(self, name: str, values: ResourceValues) -> Any:
        """Create a row that others can refer to; raise ValidationError."""
        concrete_field(self.model, self.named).clean(name, None)
        return self.model._default_manager.create(**{self.named: name})

    def insert(self, rows: Iterable[Any]) -> None:
        """Insert those of the bare rows that aren't saved yet."""

    def checked_fields(self, values: ResourceValues) -> Collection[str] | None:
        """Return the fields that these values of a file can make invalid; None for all."""
        return None

    def prefetch(self, rows: list[Any]) -> None:
        """Load what is needed to save these rows, before any of the kind is saved."""

    def keep(self, row: Any, values: ResourceValues, user: ConfigUser) -> list[ValidationIssue]:
        """Save the row as its page would; otherwise return the problems."""
        issues = list(self.missing_references(values))
        lost = {issue.path[0] for issue in issues}
        sound = {name: value for name, value in values.items() if name not in lost}
        checked = self.checked_fields(sound)
        form = self.form(row, self.describe(row) | sound, user, checked=checked)
        columns = self.columns(self.complete(row, {}))
        keys = {"given": "tools"} | {column.field.name: column.name for column in columns}
        for field, sentences in form.errors.items():
            key = keys.get(field, "")
            if key not in lost:
                path = (key,) if key else ()
                issues += [ValidationIssue(path, sentence) for sentence in sentences]
        if issues:
            return issues
        form.save()
        self.after_save(row)
        return []

    def missing_references(self, values: ResourceValues) -> Iterator[ValidationIssue]:
        """Yield references that don't exist."""
        for column in self.columns(values):
            for sentence in column.missing_names(values.get(column.name)):
                yield ValidationIssue((column.name,), sentence)

    def form(self, row: Any, values: ResourceValues, user: ConfigUser, **options: Any) -> Any:
        model_admin = admin.site.get_model_admin(self.model)
        fields = [c.field.name for c in self.columns(values)]
        names = tuple(name for name in fields if name not in self.only_first)
        json_class = model_admin.formfield_overrides.get(models.JSONField, {}).get("form_class")
        form_class = _form_class(model_admin.form, self.model, self.named, names, json_class)
        form = form_class(self.data(row, values), instance=row, user=user, **options)
        for name in {*names} & form.fields.keys():
            field = form.fields[name]
            if isinstance(field, forms.CharField):
                field.strip = False  # as written
        return form

    def data(self, row: Any, values: ResourceValues) -> ResourceValues:
        """Return the form data for these values, without secrets."""
        columns = [c for c in self.columns(values) if not c.is_secret and c.name in values]
        data = {self.named: getattr(row, self.named)}
        return data | {c.field.name: c.form_value(values[c.name]) for c in columns}

    def needs(self, row: Any, values: ResourceValues) -> list[str]:
        """Return the secrets that the file names and the row lacks."""
        lacking: list[str] = []
        for column in self.columns(values):
            value = values.get(column.name) if column.is_secret else None
            if isinstance(value, list):
                lacking += [name for name in value if name not in column.of(row)]
            elif value and not column.of(row):
                lacking.append(str(column.field.verbose_name))
        return lacking

    def after_save(self, row: Any) -> None:
        """Notify the rest of the installation once the import is committed."""

    def save_first_versions(self, rows: list[Any]) -> None:
        """Save a version of rows without one, before they are changed."""

    def save_versions(self, rows: list[Any], user: ConfigUser) -> None:
        """Save these rows as versions after they were changed."""

    def disable(self, row: Any, user: ConfigUser) -> list[ValidationIssue]:
        row.enabled = False
        row.save(update_fields=["enabled"])
        self.after_save(row)
        return []
