from dataclasses import dataclass
from itertools import permutations

import pytest

from agents.web.presentation.steps.step_order import Outline, sort_steps


@dataclass(frozen=True)
class Row:
    number: int
    parent: int | None = None


SIDE_BY_SIDE = [Row(1), Row(2), Row(3, 1), Row(4, 2), Row(5, 1), Row(6, 4), Row(7)]


def test_a_step_is_followed_by_its_child_steps():
    assert [row.number for row in sort_steps(SIDE_BY_SIDE)] == [1, 3, 5, 2, 4, 6, 7]


def test_a_step_without_a_visible_parent_is_at_the_top_level():
    assert [row.number for row in sort_steps([Row(4, 2), Row(5)])] == [4, 5]


def _arrivals():
    for order in permutations(SIDE_BY_SIDE):
        seen = set()
        if all(
            row.parent is None or row.parent in seen
            for row in order
            if not seen.add(row.number)
        ):
            yield order


def test_rows_arriving_in_any_order_end_up_as_on_a_loaded_page():
    for order in _arrivals():
        outline, page = Outline(), []
        for row in order:
            behind = outline.add(row)
            at = len(page) if behind is None else page.index(behind) + 1 if behind else 0
            page.insert(at, row.number)
        assert page == [1, 3, 5, 2, 4, 6, 7], order


@pytest.mark.parametrize("rows", [[], SIDE_BY_SIDE])
def test_replacing_the_rows_removes_old_ones(rows):
    outline = Outline()
    outline.add(Row(9))

    outline.take(rows)

    assert (9 in outline) is False
    assert outline.numbers == [row.number for row in rows]
