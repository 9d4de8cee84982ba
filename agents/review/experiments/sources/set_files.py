"""Example sets as files: CSV and JSON Lines, in and out."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from agents.access import masking
from agents.engine.text import FORMULA, shorten_line
from agents.review.models import Example, ExampleSet
from agents.web.downloads import csv_line

from ..scoring import checks

MAX_BYTES = 5_000_000
MAX_CELL_CHARS = 131_072
MAX_ROWS = 500
MAX_QUESTION_CHARS = 20_000
MAX_NAME_CHARS = 120
COLUMNS = ("name", "question", "expected", "checks", "tags")


class InvalidFile(ValueError):
    """Raised for a file that can't be read at all; the user sees the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowResult:
    """What happened to a row of the file; `problem` is empty if it was added."""

    number: int
    name: str
    problem: str = ""


@dataclass(slots=True)
class ImportResult:
    rows: list[RowResult] = field(default_factory=list)

    @property
    def added(self) -> int:
        return sum(not row.problem for row in self.rows)

    @property
    def problems(self) -> list[RowResult]:
        return [row for row in self.rows if row.problem]


def import_file(example_set: ExampleSet, name: str, data: bytes, user: User) -> ImportResult:
    """Add the file's rows; each one is added or has a problem. Raise InvalidFile."""
    if len(data) > MAX_BYTES:
        raise InvalidFile(
            _("The file is larger than %(most)d MB.") % {"most": MAX_BYTES // 10**6}
        )
    try:
        text = data.decode("utf-8-sig").replace("\0", "")
    except UnicodeDecodeError:
        raise InvalidFile(_("The file isn't UTF-8 text.")) from None
    is_csv = name.lower().endswith(".csv")
    try:
        rows = list(_csv_rows(text) if is_csv else _json_rows(text))
    except csv.Error:
        raise InvalidFile(_("The file has no rows.")) from None
    if not rows:
        raise InvalidFile(_("The file has no rows."))
    if len(rows) > MAX_ROWS:
        raise InvalidFile(
            _("The file has %(count)d rows; up to %(most)d can be imported at once.")
            % {"count": len(rows), "most": MAX_ROWS}
        )
    result = ImportResult()
    for number, row in rows:
        saved_name = ""
        problem = ""
        if isinstance(row, dict):
            try:
                with transaction.atomic():
                    saved_name = add(example_set, row, user).name
            except ValueError as error:
                saved_name = clean_text(row.get("name"))[:60]
                problem = str(error)
        else:
            problem = _("This line isn't a JSON object.")
        result.rows.append(RowResult(number=number, name=saved_name, problem=problem))
    return result


def _csv_rows(text: str) -> Iterator[tuple[int, Any]]:
    reader = csv.DictReader(io.StringIO(text))
    if "question" not in (reader.fieldnames or ()):
        raise InvalidFile(_("The first line needs a column named “question”."))
    for row in reader:
        # The limit of the module belongs to the whole process, and other code raises it.
        if any(len(value or "") > MAX_CELL_CHARS for key, value in row.items() if key):
            raise csv.Error
        cells = {key: value for key, value in row.items() if key}
        for key, value in cells.items():
            # As our export escapes what a spreadsheet would take for a formula.
            if value and value[0] == "'" and FORMULA.match(value, 1):
                cells[key] = value[1:]
        yield reader.line_num, cells


def _json_rows(text: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError):
                yield number, None


def add(example_set: ExampleSet, row: dict[str, Any], user: User | None) -> Example:
    """Add one example; raise ValueError with a reason."""
    question = clean_text(row.get("question"))
    if not question:
        raise ValueError(_("The question is empty."))
    if (duplicate := find_duplicate(example_set, question)) is not None:
        raise ValueError(duplicate_message(duplicate))
    parsed = row.get("checks") or []
    if isinstance(parsed, str):
        try:
            parsed = json.loads(parsed)
        except (ValueError, RecursionError):
            raise ValueError(_("The checks aren't valid JSON.")) from None
    if not isinstance(parsed, list) or not all(isinstance(check, dict) for check in parsed):
        raise ValueError(_("The checks must be a list of objects."))
    return Example.objects.create(
        example_set=example_set,
        name=free_name(clean_text(row.get("name")) or question),
        question=question,
        expected=clean_text(row.get("expected")),
        checks=checks.clean(parsed),
        tags=clean_tags(row.get("tags")),
        saved_by=user,
    )


def clean_text(value: Any) -> str:
    text = str(value or "").replace("\r\n", "\n").replace("\0", "").strip()
    return text[:MAX_QUESTION_CHARS].encode(errors="replace").decode()


def clean_tags(value: Any) -> str:
    tags = value if isinstance(value, list) else str(value or "").replace("、", ",").split(",")
    return ", ".join(filter(None, dict.fromkeys(map(clean_text, tags))))[:200]


def find_duplicate(
    example_set: ExampleSet | None, question: str, excluded_pk: int | None = None
) -> Example | None:
    """Return an example of the set with the same question, if any."""
    if example_set is None:
        return None
    same = Example.objects.filter(example_set=example_set, question=question)
    return (same.exclude(pk=excluded_pk) if excluded_pk else same).first()


def duplicate_message(example: Example) -> str:
    return _("The set already has this question: %(name)s.") % {"name": example.name}


def free_name(text: str) -> str:
    """Return an unused name, numbered if needed."""
    bare = shorten_line(text, MAX_NAME_CHARS - 8)
    name = bare
    number = 1
    # Once for all numbers: a file can have hundreds of rows with one name.
    same_start = Example._base_manager.filter(name__startswith=bare)
    used_names = set(same_start.values_list("name", flat=True))
    while name in used_names:
        number += 1
        name = f"{bare} ({number})"
    return name


def export(examples: Iterable[Example], file_format: str, *, is_unmasked: bool) -> str:
    """Return examples as CSV or JSON Lines; recorded questions masked for reviewers."""
    rows = []
    for example in examples:
        row = {name: getattr(example, name) for name in COLUMNS}
        if example.run_id is not None and not is_unmasked:
            for name in ("name", "question", "expected"):
                row[name] = masking.mask_text(row[name])
        rows.append(row)
    if file_format == "jsonl":
        return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    for row in rows:
        row["checks"] = json.dumps(row["checks"], ensure_ascii=False)
    lines = [COLUMNS, *([row[name] for name in COLUMNS] for row in rows)]
    return "".join(map(csv_line, lines))
