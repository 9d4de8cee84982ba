import json
from html.parser import HTMLParser

import pytest
from django.template.loader import render_to_string
from django.utils import translation

from agents.web.presentation.formats.structured_output import (
    build_output_view,
    inline_text,
    split_tables,
    table_preview,
)

ROWS = [
    {"city": "Kyoto", "people": 1_440_000, "is_old": True},
    {"city": "Chiba", "people": None, "mayor": "x"},
]


def page(value):
    return render_to_string("run/_output.html", {"output": build_output_view(value)})


class Words(HTMLParser):
    """Collects a page's text by element."""

    def __init__(self, html):
        super().__init__()
        self.found, self.open = [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.open.append((tag, dict(attrs).get("class", "")))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        if data.strip():
            self.found.append((*self.open[-1], data.strip()))


def test_rows_are_a_table_with_a_caption_and_numbers_to_the_right():
    words = Words(page(ROWS)).found

    assert words == [
        ("caption", "visually-hidden", "Table with 2 rows"),
        ("th", "", "City"),
        ("th", "number", "People"),
        ("th", "", "Is old"),
        ("th", "", "Mayor"),
        ("td", "", "Kyoto"),
        ("td", "number", "1,440,000"),
        ("td", "", "Yes"),
        ("td", "nothing", "—"),
        ("td", "", "Chiba"),
        ("td", "number", "—"),
        ("td", "nothing", "—"),
        ("td", "", "x"),
    ]


def test_an_object_is_rendered_as_nested_fields():
    words = Words(
        page({"name": "Japan", "area": 377.975, "cities": ROWS, "seas": ["a", 2]})
    ).found

    assert words[:3] == [
        ("dt", "", "Name"),
        ("p", "output-text", "Japan"),
        ("dt", "", "Area"),
    ]
    assert ("p", "output-number", "377.975") in words
    assert ("td", "", "Kyoto") in words
    assert words[-2:] == [("p", "output-text", "a"), ("p", "output-number", "2")]


def test_values_are_escaped():
    hostile = "<script>alert(1)</script>{{ x }}"
    for value in (
        hostile,
        [hostile],
        {hostile: hostile},
        [{hostile: hostile}],
        [[[[[[[hostile]]]]]]],
    ):
        html = page(value)

        assert "<script" not in html
        assert "&lt;script&gt;" in html


def test_very_deep_values_are_shown_as_json():
    view = build_output_view({"a": [[[[[{"b": [1]}]]]]]})
    while view.kind != "json":
        view = (view.items or [field for _, field in view.fields])[0]

    assert json.loads(view.text) == {"b": [1]}


def test_long_tables_and_lists_are_truncated_with_a_note():
    assert "… and 5 more" in page([{"n": n} for n in range(205)])
    assert "… and 1 more" in page(list(range(201)))
    assert "more" not in page(list(range(200)))


def test_very_large_values_are_truncated_json():
    view = build_output_view([[[n] * 50] for n in range(150)])

    assert (view.kind, len(view.text)) == ("json", 20_000)
    assert view.omission.endswith("characters omitted")


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        ("Two\nlines", "text", "Two\nlines"),
        (0, "number", "0"),
        (False, "text", "No"),
        (None, "nothing", "—"),
        ("", "nothing", "—"),
        ([], "nothing", "—"),
        ({}, "nothing", "—"),
    ],
)
def test_a_single_value_is_one_line(value, kind, text):
    view = build_output_view(value)

    assert (view.kind, view.text) == (kind, text)
    assert text in page(value)


def test_numbers_are_formatted_the_same_in_every_language():
    with translation.override("de"):
        assert "1234567.5" in page({"n": 1234567.5})


@pytest.mark.parametrize(
    ("numbers", "shown"),
    [
        ([1156, 681.5], ["1156.0", "681.5"]),
        ([2026, 2025], ["2026", "2025"]),
        ([12345, 9.25], ["12,345.00", "9.25"]),
        ([3.0, 4], ["3", "4"]),
        ([1e-9, 2e30], ["1e-09", "2e+30"]),
    ],
)
def test_numbers_in_a_column_have_the_same_format(numbers, shown):
    view = build_output_view([{"value": number} for number in numbers])

    assert [row[0].text for row in view.rows] == shown


TOLD = {"columns": ["name", "total"], "rows": [["Tea", 12], ["Ink", 7]], "truncated": False}
QUESTION = f"Shall [these] be told on? {json.dumps(TOLD)} Say yes."


def test_rows_in_a_question_are_rendered_as_a_table():
    before, rows, after = split_tables(QUESTION)

    assert (before.text, after.text) == ("Shall [these] be told on?", "Say yes.")
    assert [column.name for column in rows.columns] == ["name", "total"]
    assert [[cell.text for cell in row] for row in rows.rows] == [["Tea", "12"], ["Ink", "7"]]
    assert inline_text(QUESTION) == "Shall [these] be told on? … Say yes."


@pytest.mark.parametrize(
    "text",
    [
        "Yes?",
        "",
        "[" * 100_000,
        '{"columns": ["a", "a"], "rows": [[1, 2]]}',
        '{"columns": ["a"], "rows": [[1, 2]]}',
        '{"columns": ["a"], "rows": [[1]], "by": "x"}',
        json.dumps([{"n": n} for n in range(201)]),
    ],
)
def test_a_question_without_a_complete_table_is_shown_literally(text):
    assert "".join(part.text for part in split_tables(text)) == text


def test_a_result_shows_its_first_rows():
    found = table_preview(json.dumps({"columns": ["n"], "rows": [[n] for n in range(9)]}))

    assert len(found.rows) == 5
    assert found.omission == "… and 4 more"
    assert table_preview("42") is None


def test_truncated_rows_have_a_note():
    [rows] = split_tables(json.dumps({**TOLD, "truncated": True}))

    assert rows.omission == "The result was truncated. More rows exist."


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("title", "Title"),
        ("unit_price", "Unit price"),
        ("unitPrice", "Unit price"),
        ("URL", "URL"),
        ("売上", "売上"),
        ("Total (USD)", "Total (USD)"),
    ],
)
def test_the_name_of_a_field_is_a_heading(name, label):
    assert f"<dt>{label}</dt>" in page({name: 1156.0})
    assert ">1156</p>" in page({name: 1156.0})


def test_a_table_with_a_title_is_a_report_without_names_of_fields():
    rows = [{"name": "Tea", "value": 12}, {"name": "Ink", "value": 7}]

    report = build_output_view({"title": "Best sellers", "rows": rows, "note": "Tea leads."})
    plain = build_output_view({"title": "Best sellers", "rows": rows, "note": None})

    assert (report.kind, report.text) == ("report", "Best sellers")
    assert [item.kind for item in report.items] == ["table", "text"]
    assert [item.kind for item in plain.items] == ["table"]
