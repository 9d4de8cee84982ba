"""Small charts as SVG, drawn on the server: they need neither JavaScript nor inline styles.

Templates use the tags `sparkline`, `bar_chart` and `share_bar`; `static/css/charts.css` gives
them their size and, by `data-tone`, their color.
"""

from collections.abc import Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

WIDTH, HEIGHT, TOP = 240, 56, 4
GAP, MIN_BAR_HEIGHT = 2.0, 1.5
SHARE_WIDTH, SHARE_HEIGHT, MIN_SHARE = 100, 6, 2.0

Values = Sequence[float | None]


def sparkline(
    values: Values, tone: str = "blue", label: str = "", limit: float | None = None
) -> SafeString:
    """Render values as a line over a tinted area; None is a gap that the line bridges.

    `limit` is a dashed line, such as the value of an alert.
    """
    points = _points(values, limit)
    dashed = "" if limit is None else _limit_line(_y(limit, _most(values, limit)))
    if not points:
        return _svg("line", tone, label, dashed)
    return _svg("line", tone, label, _area_and_line(points, dashed))


def bar_chart(values: Sequence[float], tone: str = "ink", label: str = "") -> SafeString:
    """Render values as bars; the last one, which is still growing, is emphasized."""
    most, count = max(values, default=0) or 1, max(len(values), 1)
    width = WIDTH / count
    bars = (
        (
            "bar last" if at == count - 1 else "bar",
            f"{at * width + GAP / 2:.2f}",
            f"{HEIGHT - height:.2f}",
            f"{max(width - GAP, 1):.2f}",
            f"{height:.2f}",
        )
        for at, value in enumerate(values)
        if (height := max(MIN_BAR_HEIGHT, value / most * (HEIGHT - TOP)) if value else 0)
    )
    html = '<rect class="{}" x="{}" y="{}" width="{}" height="{}" rx="1"/>'
    return _svg("bars", tone, label, format_html_join("", html, bars))


def share_bar(value: float, most: float, tone: str = "violet") -> SafeString:
    """Render a horizontal bar, as long as the value's share of the largest one.

    It is hidden from screen readers, because its number is written beside it.
    """
    share = max(MIN_SHARE, min(1.0, value / most) * SHARE_WIDTH) if most and value else 0
    return format_html(
        '<svg class="share-bar" data-tone="{}" viewBox="0 0 {} {}" preserveAspectRatio="none"'
        ' aria-hidden="true"><rect class="track" width="100%" height="100%"/>'
        '<rect class="share" width="{}" height="100%"/></svg>',
        *(tone, SHARE_WIDTH, SHARE_HEIGHT, f"{share:.1f}"),
    )


def _points(values: Values, limit: float | None) -> list[tuple[float, float]]:
    step, most = WIDTH / max(len(values) - 1, 1), _most(values, limit)
    return [(at * step, _y(v, most)) for at, v in enumerate(values) if v is not None]


def _most(values: Values, limit: float | None) -> float:
    return max([*(v for v in values if v is not None), limit or 0.0], default=0.0) or 1.0


def _y(value: float, most: float) -> float:
    return HEIGHT - value / most * (HEIGHT - TOP)


def _area_and_line(points: list[tuple[float, float]], between: SafeString | str) -> SafeString:
    line = " L".join(f"{x:.1f},{y:.1f}" for x, y in points)
    first, last = f"{points[0][0]:.1f}", f"{points[-1][0]:.1f}"
    return format_html(
        '<path class="area" d="M{0},{1} L{2} L{3},{1}Z"/>{4}'
        '<path class="line" d="M{2}" vector-effect="non-scaling-stroke"/>',
        *(first, HEIGHT, line, last, between),
    )


def _limit_line(y: float) -> SafeString:
    html = '<path class="limit" d="M0,{0} H{1}" vector-effect="non-scaling-stroke"/>'
    return format_html(html, f"{y:.1f}", WIDTH)


def _svg(kind: str, tone: str, label: str, shapes: SafeString | str) -> SafeString:
    role = format_html('role="img" aria-label="{}"', label) if label else 'aria-hidden="true"'
    return format_html(
        '<svg class="mini-chart" data-kind="{}" data-tone="{}" viewBox="0 0 {} {}"'
        ' preserveAspectRatio="none" {}>{}</svg>',
        *(kind, tone, WIDTH, HEIGHT, SafeString(role), shapes),
    )
