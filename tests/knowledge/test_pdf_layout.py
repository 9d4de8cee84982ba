"""Tables, columns and forms of PDF pages become Markdown that keeps what belongs together."""

import pytest

from agents.knowledge import parsing
from agents.knowledge.parsing import parsers
from agents.knowledge.parsing.parsers import values
from tests import document_files as files

ROWS = [["City", "Hotel", "Meals"], ["Berlin", "180", "45"], ["Osaka", "150", "40"]]
ROWS += [["Paris", "210", "55"]]
TABLE = "| City | Hotel | Meals |\n| --- | --- | --- |\n| Berlin | 180 | 45 |"
WORDS = "the heron nests in the reeds of a lake"


def parse(*pages: str, **more: str) -> parsing.ParsedDocument:
    data = files.drawn_pdf(*pages, **more)
    return parsers.parse(parsers.SourceFile(data=data, name="a.pdf"))


def cells(rows: list[list[str]], *, left: int = 60, top: int = 700, width: int = 90) -> str:
    return "".join(
        files.text_at(left + column * width, top - row * 16, text)
        for row, texts in enumerate(rows)
        for column, text in enumerate(texts)
    )


def borders(columns: int, rows: int, *, left: int = 55, top: int = 712, width: int = 90) -> str:
    right = left + columns * width
    bottom = top - rows * 16
    flat = [files.line_from(left, top - n * 16, right, top - n * 16) for n in range(rows + 1)]
    upright = [
        files.line_from(left + n * width, bottom, left + n * width, top)
        for n in range(columns + 1)
    ]
    return "".join(flat + upright)


def test_a_table_without_lines_keeps_its_rows_and_its_header() -> None:
    before = files.text_at(60, 760, "Limits of travel expenses are these:")
    [page] = parse(before + cells(ROWS)).parts
    assert page.text.startswith(f"Limits of travel expenses are these:\n\n{TABLE}")
    assert "| Paris | 210 | 55 |" in page.text


def test_a_table_with_lines_keeps_wrapped_cells_in_one_row() -> None:
    wrapped = files.text_at(150, 702, "Hotel per", 6) + files.text_at(150, 697, "night", 6)
    rows = [["City", "", "Meals"], *ROWS[1:3]]
    [page] = parse(borders(3, 3) + cells(rows) + wrapped).parts
    assert page.text.startswith("| City | Hotel per night | Meals |")
    assert page.text.count("\n") == 3


def test_a_cell_over_two_rows_is_in_both() -> None:
    # No line between the second and third row of the first column.
    grid = "".join(files.line_from(55, y, 235, y) for y in (712, 696, 664))
    grid += files.line_from(145, 680, 235, 680)
    grid += "".join(files.line_from(x, 664, x, 712) for x in (55, 145, 235))
    words = cells([["City", "Limit"]]) + files.text_at(60, 676, "Berlin")
    words += files.text_at(150, 684, "180") + files.text_at(150, 668, "210")
    [page] = parse(grid + words).parts
    assert page.text.endswith("| Berlin | 180 |\n| Berlin | 210 |")


def test_a_table_that_is_drawn_by_columns_has_the_same_rows() -> None:
    columns = [[row[number] for row in ROWS] for number in range(3)]
    drawn = "".join(
        files.text_at(60 + number * 90, 700 - row * 16, text)
        for number, column in enumerate(columns)
        for row, text in enumerate(column)
    )
    assert parse(drawn).parts[0].text.startswith(TABLE)


def test_two_columns_that_are_written_line_by_line_are_read_one_after_the_other() -> None:
    lines = [(f"left {n} {WORDS}", f"right {n} {WORDS}") for n in range(8)]
    page = "".join(
        files.text_at(60, 700 - n * 14, left) + files.text_at(310, 700 - n * 14, right)
        for n, (left, right) in enumerate(lines)
    )
    text = parse(page).parts[0].text
    assert "|" not in text
    order = [text.index(f"left {n}") for n in range(8)]
    order += [text.index(f"right {n}") for n in range(8)]
    assert order == sorted(order)


@pytest.mark.parametrize(
    "rows",
    [
        [[f"{n}.", f"{WORDS} {n}"] for n in range(1, 6)],
        [["-", f"item {n}"] for n in range(5)],
        [[f"a = {n}", f"\\({n}\\)"] for n in range(5)],
        [[f"Chapter {n} ..........", f"{n}"] for n in range(5)],
    ],
    ids=["numbers", "marks", "equations", "contents"],
)
def test_lists_equations_and_contents_are_no_tables(rows: list[list[str]]) -> None:
    assert "|" not in parse(cells(rows, width=160)).parts[0].text


def test_the_values_of_a_form_are_read() -> None:
    document = parse(
        files.text_at(60, 700, "Please fill in."),
        catalog="/AcroForm << /Fields [6 0 R] >>",
        page="/Annots [6 0 R]",
        object="<< /Type /Annot /Subtype /Widget /FT /Tx /T (Name) /V (Ann Heron) "
        "/Rect [100 600 300 620] >>",
    )
    assert document.parts[0].text == "Please fill in.\n\n- Name: Ann Heron"


def test_comparing_lines_with_each_other_is_counted_as_work() -> None:
    upright = "".join(
        f"{n % 500} {n // 500 * 20} m {n % 500} {n // 500 * 20 + 9} l S\n" for n in range(2_500)
    )
    flat = "".join(
        f"{n % 10 * 20} {300 + n // 10} m {n % 10 * 20 + 9} {300 + n // 10} l S\n"
        for n in range(2_500)
    )
    texts = "".join(files.text_at(60, 700 - 20 * n, "heron") for n in range(5))
    source = parsers.SourceFile(
        data=files.drawn_pdf(texts + upright + flat),
        name="a.pdf",
    )
    parsers.parse(source)

    assert source.work.left < values.MAX_STEPS - 100_000


@pytest.mark.thorough
def test_a_page_of_very_many_lines_is_read_within_limits() -> None:
    drawing = "".join(f"{n % 500} 0 m {n % 500} 800 l S\n" for n in range(21_000))
    grid = "".join(f"0 {n} m 590 {n} l S\n" for n in range(800))
    source = parsers.SourceFile(
        data=files.drawn_pdf(files.text_at(60, 700, "heron\n") * 4 + drawing + grid),
        name="a.pdf",
    )
    assert "heron" in parsers.parse(source).parts[0].text
    assert source.work.left > values.MAX_STEPS / 2
