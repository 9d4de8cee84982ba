"""The form of a database: its address, and a checklist of what agents can read."""

import json
import sqlite3
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.models import construct_instance
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from agents.catalog.tools import databases
from agents.db.installation import configured
from agents.models import DatabaseConnection, ToolRegistration
from agents.tools.addresses import is_host
from agents.tools.database.schema import Schema

Kind = DatabaseConnection.Kind
# The saved password is only sent where it was meant for.
ADDRESS_FIELDS = ("kind", "host", "port", "tls")
REENTER_PASSWORD = _("The address changed. Enter the password again.")
NAME_TAKEN = _("A tool named %(name)s already exists. Choose another name.")
DEFAULTS: dict[str, Any] = {
    "max_rows": configured.DATABASE_ROWS,
    "timeout": configured.DATABASE_SECONDS,
}
MODE = "mode"
TABLE = "table"
COLUMN = "column"
MAX_TABLES_LISTED = 1_000
TABLES_HELP = _("Open a table to choose its columns. Agents can't see what isn't selected.")


class TablesWidget(forms.Widget):
    """All tables, or a checklist of tables and their columns; without a schema, JSON."""

    template_name = "admin/agents/databaseconnection/_tables.html"
    schema: Schema | None = None

    def _render(self, template_name: str, context: Any, renderer: Any = None) -> SafeString:
        return render_to_string(template_name, context)

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        if f"{name}-{MODE}" not in data:
            return data.get(name)
        if data[f"{name}-{MODE}"] == "all":
            return None
        if f"{name}-listed" not in data:
            return data.get(name)
        try:
            return json.dumps(_read_choices(data, name))
        except (ValueError, TypeError, RecursionError):
            return "?"  # not from our page; the field says what it should be

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return name not in data and f"{name}-{MODE}" not in data

    def format_value(self, value: Any) -> Any:
        if isinstance(value, str):
            try:
                return json.loads(value)
            except ValueError:
                return value
        return value

    def get_context(self, name: str, value: Any, attrs: Any) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        chosen = self.format_value(value)
        if chosen is not None and not isinstance(chosen, dict):
            chosen = {}  # typed by hand, and wrong
        tables = list(_table_choices(self.schema, chosen)) if self.schema else []
        missing: list[str] = []  # tables of the list that the database no longer has
        if self.schema and isinstance(chosen, dict):
            existing = {self.schema.fold(key) for key in self.schema.names()}
            missing = [key for key in chosen if self.schema.fold(key) not in existing]
        context["widget"] |= {
            "is_limited": chosen is not None,
            "tables": tables[:MAX_TABLES_LISTED],
            "count": len(tables),
            "chosen": sum(table["is_chosen"] for table in tables),
            "missing": missing,
            "text": "" if chosen is None else json.dumps(chosen, ensure_ascii=False),
        }
        return context


def _read_choices(data: Any, name: str) -> dict[str, list[str] | None]:
    """Read a checklist; a table with all its columns allows new ones, too."""
    columns: dict[str, list[str]] = {}
    for pair in data.getlist(f"{name}-{COLUMN}"):
        table, column = json.loads(pair)
        columns.setdefault(table, []).append(column)
    totals = dict(json.loads(pair) for pair in data.getlist(f"{name}-total"))
    chosen: dict[str, list[str] | None] = {}
    for table in data.getlist(f"{name}-{TABLE}"):
        picked = columns.get(table, [])
        total = totals.get(table, 0)
        if picked or not total:  # without any column there is nothing to read
            chosen[table] = None if len(picked) in (0, total) else picked
    return chosen


def _table_choices(schema: Schema, chosen: Any) -> Any:
    """Yield the tables for the template, with what is chosen."""
    columns_by_table = {schema.fold(key): value for key, value in (chosen or {}).items()}
    for table in schema.tables:
        is_chosen = chosen is None or schema.fold(table.key) in columns_by_table
        picked = columns_by_table.get(schema.fold(table.key))
        picked = picked if isinstance(picked, list) else None
        columns = [
            {
                "name": column.name,
                "type": column.type,
                "value": json.dumps([table.key, column.name]),
                "is_chosen": picked is None or column.name in picked,
            }
            for column in table.columns
        ]
        yield {
            "key": table.key,
            "is_view": table.is_view,
            "estimate": table.estimate,
            "is_chosen": is_chosen,
            "columns": columns,
            "picked": sum(bool(column["is_chosen"]) for column in columns),
            "total": json.dumps([table.key, len(columns)]),
        }


class TablesField(forms.JSONField):
    widget = TablesWidget

    def bound_data(self, data: Any, initial: Any) -> Any:
        return data

    def prepare_value(self, value: Any) -> Any:
        return value

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return bool(initial != self.to_python(data))
        except ValidationError:
            return True

    def to_python(self, value: Any) -> Any:
        return None if value in (None, "") else super().to_python(value)


class DatabaseForm(forms.ModelForm):
    """Rejects what couldn't be connected, with a message beside the field."""

    class Meta:
        field_classes = {"tables": TablesField}
        widgets = {
            "description": forms.Textarea(attrs={"class": "vLargeTextField", "rows": 3}),
            "password": forms.PasswordInput(attrs={"autocomplete": "new-password"}),
            "ca_certificate": forms.Textarea(
                attrs={"class": "vLargeTextField code", "rows": 4, "spellcheck": "false"}
            ),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "file" in self.fields:
            choices = sorted({*databases.files(), *filter(None, [self.instance.file])})
            self.fields["file"].widget = forms.Select(
                choices=[("", "—"), *((name, name) for name in choices)]
            )
        for name, setting in DEFAULTS.items():
            if name in self.fields:
                self.fields[name].widget.attrs["placeholder"] = f"{setting.value:g}"
        if "password" in self.fields and self.instance.password:
            hint = _("Leave empty to keep the saved one.")
            self.fields["password"].help_text = hint
        if "tables" in self.fields:
            self.fields["tables"].help_text = TABLES_HELP
            widget = self.fields["tables"].widget
            widget.schema = self.known_schema() if isinstance(widget, TablesWidget) else None

    def known_schema(self) -> Schema | None:
        """Return the tables as they were at the last check; None if they were never read."""
        row = self.instance
        if row.kind != Kind.SQLITE or not row.pk:
            return Schema.from_dict(row.schema) if row.schema else None
        try:
            return databases.saved_schema(row)
        except (databases.InvalidFile, sqlite3.Error):
            return None

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"])
        tool = DatabaseConnection(name=name).tool_name
        namesakes = ToolRegistration.objects.filter(name=tool)
        if self.instance.pk:
            namesakes = namesakes.exclude(connection=self.instance.pk)
        if not self.instance.is_sample and namesakes.exists():
            raise ValidationError(NAME_TAKEN % {"name": tool})
        return name

    def clean_host(self) -> str:
        host = str(self.cleaned_data["host"]).strip()
        # A driver would read a list as several hosts, of which none is checked.
        is_path = host.startswith("/") and "," not in host
        if host and not is_path and not is_host(host):
            raise ValidationError(
                _("Enter a host name or IP address, without https:// or port.")
            )
        return host

    def clean_file(self) -> str:
        name = str(self.cleaned_data["file"]).strip()
        if name:
            try:
                databases.file_path(DatabaseConnection(kind=Kind.SQLITE, file=name))
            except databases.InvalidFile as error:
                raise ValidationError(str(error)) from error
        return name

    def clean(self) -> Any:
        cleaned = super().clean() or self.cleaned_data
        saved = (
            DatabaseConnection.objects.filter(pk=self.instance.pk).first()
            if self.instance.pk
            else None
        )
        if saved and saved.password and not cleaned.get("password"):
            fields = [name for name in ADDRESS_FIELDS if name in self.fields]
            if any(cleaned.get(name) != getattr(saved, name) for name in fields):
                self.add_error("password", REENTER_PASSWORD)
        return cleaned

    def unsaved_row(self) -> DatabaseConnection:
        """Return the row as it would be saved."""
        fields = [name for name in self.fields if name in self.cleaned_data]
        row: DatabaseConnection = construct_instance(self, self.instance, fields)
        return row
