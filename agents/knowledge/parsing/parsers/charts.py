"""Charts of Office files, whose figures are saved with them, as tables."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from . import markdown
from .archive import Archive
from .office import local_name

MAX_CHARTS = 200
MAX_POINTS = 5_000
MAX_SERIES = 100


def chart_tables(archive: Archive, name: str) -> Iterator[str]:
    """Yield each chart of a part, such as a slide, with its title."""
    names = [
        target
        for kind, target in archive.relationships(name).values()
        if kind == "chart" and target in archive.names
    ]
    for chart_name in names[:MAX_CHARTS]:
        chart = archive.xml(chart_name)
        title = next(
            (element for element in chart.iter() if local_name(element) == "title"), None
        )
        words = (
            []
            if title is None
            else [e.text or "" for e in title.iter() if local_name(e) == "t"]
        )
        heading = markdown.collapse("".join(words))
        yield f"**{heading}**" if heading else ""
        yield _table([e for e in chart.iter() if local_name(e) == "ser"][:MAX_SERIES])


def _table(series: list[Element]) -> str:
    """Return a table with a row per category and a column per series."""
    columns: list[tuple[str, dict[int, str]]] = []
    categories: dict[int, str] = {}
    for number, element in enumerate(series, start=1):
        points = {local_name(child): _points(child) for child in element}
        categories |= points.get("cat") or points.get("xVal") or {}
        values = points.get("val") or points.get("yVal") or {}
        columns.append((" ".join(points.get("tx", {}).values()) or f"{number}", values))
    numbers = sorted({*categories, *(key for _, values in columns for key in values)})
    rows = [["", *(name for name, _ in columns)]]
    rows += [
        [categories.get(key, f"{key + 1}"), *(values.get(key, "") for _, values in columns)]
        for key in numbers[:MAX_POINTS]
    ]
    return markdown.table(rows)


def _points(element: Element) -> dict[int, str]:
    """Return the saved values by their number."""
    points: dict[int, str] = {}
    for point in element.iter():
        index = point.get("idx", "")
        if local_name(point) == "pt" and index.isdigit() and len(index) < 7:
            value = next((child.text for child in point if local_name(child) == "v"), "")
            points[int(index)] = value or ""
    if not points and local_name(element) == "tx":
        points[0] = "".join(e.text or "" for e in element.iter() if local_name(e) == "v")
    return points
