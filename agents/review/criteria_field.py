"""The rubric of a review queue as rows of its form."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from agents.db.fast_writes import concrete_field
from agents.db.sanitize import parse_id, sanitize_text

from .models import Criterion, ReviewQueue

COLUMNS = ("id", "name", "about", "scale")
MAX_CRITERIA = 20

Row = dict[str, str]


def saved_rows(queue: ReviewQueue) -> list[Row]:
    """Return the criteria of a queue as its form has them."""
    if queue.pk is None:
        return []
    rows = queue.criteria.values_list("pk", "name", "about", "scale")
    return [dict(zip(COLUMNS, map(str, row), strict=True)) for row in rows]


def save_rows(queue: ReviewQueue, rows: Iterable[Row]) -> None:
    """Save the criteria in this order; those that are missing are deleted with their scores."""
    criteria = {criterion.pk: criterion for criterion in queue.criteria.all()}
    for position, row in enumerate(rows):
        saved = criteria.pop(parse_id(row["id"]) or 0, None)
        criterion = saved or Criterion(queue=queue)
        criterion.name = row["name"]
        criterion.about = row["about"]
        criterion.scale = row["scale"]
        criterion.position = position
        criterion.save()
    queue.criteria.filter(pk__in=criteria).delete()


def describe(rows: Iterable[Row]) -> list[str]:
    """Return the criteria with their scales, for the audit log."""
    scales = dict(Criterion.Scale.choices)
    return [f"{row['name']} ({scales.get(row['scale'], '')})" for row in rows]


class CriteriaWidget(forms.Widget):
    """One row per criterion, and an empty one; rows without any text are left out."""

    use_fieldset = True

    def render(
        self, name: str, value: Any, attrs: Any = None, renderer: Any = None
    ) -> SafeString:
        context = {
            "name": name,
            "rows": [*(value or []), {}],
            "scales": Criterion.Scale.choices,
            "max_name": concrete_field(Criterion, "name").max_length,
            "max_about": concrete_field(Criterion, "about").max_length,
        }
        return render_to_string("admin/review/reviewqueue/_criteria.html", context)

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[Row]:
        columns = [data.getlist(f"{name}-{column}") for column in COLUMNS]
        rows = []
        for values in zip(*columns, strict=False):
            texts = [" ".join(sanitize_text(text).split()) for text in values]
            rows.append(dict(zip(COLUMNS, texts, strict=True)))
        return [row for row in rows if row["name"] or row["about"]]

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return f"{name}-name" not in data


class CriteriaField(forms.Field):
    widget = CriteriaWidget

    @staticmethod
    def shown_of(queue: ReviewQueue) -> list[Row]:
        """Return what the page displays, to notice what others change meanwhile."""
        return saved_rows(queue)

    def clean(self, value: list[Row]) -> list[Row]:
        if len(value) > MAX_CRITERIA:
            raise forms.ValidationError(
                _("A rubric can have up to %(most)d criteria.") % {"most": MAX_CRITERIA}
            )
        names: set[str] = set()
        for row in value:
            if not row["name"]:
                raise forms.ValidationError(_("Enter a name for each criterion."))
            if row["name"].casefold() in names:
                sentence = _("%(name)s is in the rubric twice. Rename or remove one.")
                raise forms.ValidationError(sentence % {"name": row["name"]})
            names.add(row["name"].casefold())
            for column in ("name", "about", "scale"):
                concrete_field(Criterion, column).clean(row[column], None)
        return value

    def has_changed(self, initial: Any, data: Any) -> bool:
        return (initial or []) != (data or [])
