"""What surrounds the models of text recognition: rectangles around lines, and their order."""

import numpy as np
import pytest
from PIL import Image, ImageDraw

from agents.knowledge.parsing.parsers.ocr import boxes, reading_order
from agents.knowledge.parsing.parsers.ocr.models import Line


def probability_map(*rectangles: tuple[float, float, float, float, float]) -> np.ndarray:
    """Return a map with rectangles: center, width, height, degrees clockwise."""
    image = Image.new("F", (400, 300))
    for x, y, width, height, degrees in rectangles:
        angle = np.radians(degrees)
        along = np.array([np.cos(angle), np.sin(angle)])
        rectangle = boxes.Rectangle(
            center=np.array([x, y]), along=along, width=width, height=height
        )
        ImageDraw.Draw(image).polygon([tuple(c) for c in rectangle.corners], fill=0.9)
    return np.array(image)


@pytest.mark.parametrize("degrees", [0, 8, 30, -20, -44])
def test_a_line_has_a_rectangle_at_its_angle_and_at_the_size_of_its_text(degrees: int) -> None:
    [found] = boxes.find_rectangles(probability_map((200, 150, 160, 12, degrees)))
    assert found.center == pytest.approx([200, 150], abs=1.5)
    assert np.degrees(np.arctan2(*found.along[::-1])) == pytest.approx(degrees, abs=2)
    growth = 160 * 12 / (160 + 12) * boxes.GROWTH
    assert (found.width, found.height) == pytest.approx((160 + growth, 12 + growth), abs=8)


def test_lines_are_apart_and_pieces_that_touch_are_one() -> None:
    pieces = [(100, 50, 80, 10, 0), (180, 50, 82, 10, 0), (100, 90, 80, 10, 0)]
    found = boxes.find_rectangles(probability_map(*pieces))
    assert sorted(round(rectangle.center[1]) for rectangle in found) == [50, 90]


def test_a_column_is_read_downwards() -> None:
    [found] = boxes.find_rectangles(probability_map((200, 150, 12, 160, 0)))
    assert found.along == pytest.approx([0, 1])
    assert found.width > found.height


def test_faint_and_small_areas_are_no_lines() -> None:
    faint = probability_map((100, 50, 80, 10, 0)) * 0.45
    assert boxes.find_rectangles(faint) == []
    assert boxes.find_rectangles(probability_map((100, 50, 1, 1, 0))) == []


def line(text: str, x: float, y: float, degrees: float) -> Line:
    """Return a line of 100 x 10 that begins at a place of the page before it is turned."""
    angle = np.radians(degrees)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    corners = np.array([[x, y], [x + 100, y], [x + 100, y + 10], [x, y + 10]]) @ turn
    return Line(text=text, confidence=1.0, corners=corners)


@pytest.mark.parametrize("degrees", [0, 12, -20, 90, 180, -90])
def test_lines_are_read_in_order_on_a_page_at_any_angle(degrees: int) -> None:
    places = {"d": (120, 42), "a": (0, 0), "c": (0, 40), "b": (130, 1)}
    lines = [line(text, x, y, degrees) for text, (x, y) in places.items()]
    assert reading_order.rows(lines) == [["a", "b"], ["c", "d"]]
