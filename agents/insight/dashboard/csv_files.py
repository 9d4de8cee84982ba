"""Tables as CSV files."""

from collections.abc import Iterable
from decimal import Decimal

from django.http import HttpResponse

from agents.web.downloads import csv_line

from .tables import Comparison, Table

BYTE_ORDER_MARK = "\ufeff"  # for Excel, which takes other files for Latin-1


def table_rows(table: Table) -> Iterable[Iterable[object]]:
    yield [table.label, *(metric.label for metric in table.columns)]
    for row in table.rows:
        yield [row.label, *(_number(cell.value) for cell in row.cells)]


def comparison_rows(
    groups: Iterable[tuple[object, object, Iterable[Comparison]]], headings: Iterable[str]
) -> Iterable[Iterable[object]]:
    yield headings
    for _name, _label, lines in groups:
        for line in lines:
            values = [_number(line.current.value), _number(line.previous.value)]
            yield [line.metric.label, *values]


def response(rows: Iterable[Iterable[object]], name: str) -> HttpResponse:
    text = BYTE_ORDER_MARK + "".join(map(csv_line, rows))
    http_response = HttpResponse(text, content_type="text/csv; charset=utf-8")
    http_response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return http_response


def _number(value: float | None) -> Decimal | int | None:
    """Return a number for programs: rates as shares, durations in seconds, costs in dollars."""
    if value is None:
        return None
    return int(value) if float(value).is_integer() else Decimal(f"{value:.6f}".rstrip("0"))
