"""Tables as CSV files that a spreadsheet opens without running anything in them."""

import csv
import io
from collections.abc import Iterable, Sequence

from django.http import HttpResponse

from .tables import Comparison, Table

# Excel also runs the full-width signs of Japanese keyboards.
FORMULA_PREFIXES = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\r", "\n")
BYTE_ORDER_MARK = "\ufeff"  # for Excel, which takes other files for Latin-1


def table_rows(table: Table) -> Iterable[Sequence[str]]:
    yield [str(table.label), *(str(metric.label) for metric in table.columns)]
    for row in table.rows:
        yield [_escape(row.label), *(_number(cell.value) for cell in row.cells)]


def comparison_rows(
    groups: Iterable[tuple[object, Sequence[Comparison]]], headings: Sequence[str]
) -> Iterable[Sequence[str]]:
    yield headings
    for _group, lines in groups:
        for line in lines:
            numbers = (_number(line.now.value), _number(line.before.value))
            yield [_escape(str(line.metric.label)), *numbers]


def response(rows: Iterable[Sequence[str]], name: str) -> HttpResponse:
    buffer = io.StringIO()
    buffer.write(BYTE_ORDER_MARK)
    csv.writer(buffer).writerows(rows)
    http_response = HttpResponse(buffer.getvalue(), content_type="text/csv; charset=utf-8")
    http_response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return http_response


def _number(value: float | None) -> str:
    """Return a number for programs: rates as shares, durations in seconds, costs in dollars."""
    if value is None:
        return ""
    return str(int(value)) if float(value).is_integer() else f"{value:.6f}".rstrip("0")


def _escape(text: str) -> str:
    return f"'{text}" if text.lstrip(" ").startswith(FORMULA_PREFIXES) else text
