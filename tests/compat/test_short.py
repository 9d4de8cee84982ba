"""The rows of the compatibility table that need nothing but the product."""

import sys
from textwrap import dedent

import pytest

from tests.compat import checks, results, table
from tests.compat.product import run_python
from tests.compat.rows import ROWS, Result

SHORT = [row for row in ROWS if row.is_short]


@pytest.mark.parametrize("row", SHORT, ids=lambda row: f"{row.area}: {row.name}")
async def test_all_short_compatibility_checks_pass(row):
    assert await row.check()


def test_every_area_has_rows():
    areas = {row.area for row in ROWS}

    assert areas == checks.AREAS


def test_the_page_keeps_the_results_of_rows_that_a_later_run_leaves_out(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "HOME", tmp_path)
    monkeypatch.setattr(table, "PAGE", tmp_path / "page.md")
    table.PAGE.write_text("")
    first, second, untried = ROWS[:3]
    results.save(Result(row=first, outcome="works", detail="seen first", day="2026-01-02"))
    results.save(Result(row=second, outcome="fails", detail="seen second", day="2026-03-04"))

    page = table.page([results.last(row) for row in (first, second, untried)])

    lines = [line for line in page.splitlines() if line.startswith(f"| {first.name} ")]
    assert [("seen first" in line, "2026-01-02" in line) for line in lines] == [(True, True)]
    assert "| fails | seen second |" in page
    assert page.count("| not tried |") == 1


def test_results_of_another_checkout_are_kept_from_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "HOME", tmp_path)
    monkeypatch.setattr(table, "PAGE", tmp_path / "page.md")
    tried = [
        Result(row=row, outcome="works", detail=row.area, day="2026-01-02") for row in ROWS
    ]
    table.PAGE.write_text(table.page(tried))

    assert [results.last(row) for row in ROWS] == tried


@pytest.mark.skipif(sys.platform != "linux", reason="Orphans can't be adopted here.")
async def test_a_process_that_left_its_group_does_not_outlive_its_row():
    script = """\
        import subprocess
        from tests.compat import leftovers
        leftovers.GRACE_SECONDS = 0.5
        leftovers.adopt_orphans()
        subprocess.run(["sh", "-c", "setsid sleep 300 & exit"], check=True)
        print(leftovers.end_leftovers(), leftovers.end_leftovers())
    """
    status, output, errors = await run_python("-c", dedent(script))

    assert status == 0, errors
    assert output.strip() == "['sleep'] []"


def test_the_page_of_official_suites_lists_them_with_what_is_not_run():
    suites = [row for row in ROWS if row.area == table.CONFORMANCE]
    tried = [
        Result(row=row, outcome="works", detail="7 of 7", day="2026-01-02") for row in suites
    ]

    page = table.conformance_page(tried)

    assert page.count("| 7 of 7 | 2026-01-02 |") == len(suites)
    assert all(row.notes in page for row in suites)
