"""Small charts as SVG, drawn on the server: they need neither JavaScript nor inline styles.

Templates use the tags `sparkline`, `bar_chart` and `share_bar`; `static/css/charts.css` gives
them their size and, by `data-tone`, their color.
"""

from collections.abc import Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

WIDTH = 240
HEIGHT = 56
TOP = 4
GAP = 2.0
MIN_BAR_HEIGHT = 1.5
SHARE_WIDTH = 100
SHARE_HEIGHT = 6
MIN_SHARE = 2.0


def sparkline(
    values: Sequence[float | None],
    tone: str = "blue",
    label: str = "",
    limit: float | None = None,
) -> SafeString:
    """Render values as a line over a tinted area; None is a gap that the line bridges.

    `limit` is a dashed line, such as the value of an alert.
    """
    step = WIDTH / max(len(values) - 1, 1)
    max_value = max(v for v in (*values, limit or 0.0) if v is not None) or 1.0
    points = [
        f"{index * step:.1f},{HEIGHT - value / max_value * (HEIGHT - TOP):.1f}"
        for index, value in enumerate(values)
        if value is not None
    ]
    shapes = SafeString()
    if limit is not None:
        html = '<path class="limit" d="M0,{0} H{1}" vector-effect="non-scaling-stroke"/>'
        shapes = format_html(html, f"{HEIGHT - limit / max_value * (HEIGHT - TOP):.1f}", WIDTH)
    if points:
        shapes = format_html(
            '<path class="area" d="M{first_x},{height} L{line} L{last_x},{height}Z"/>{limit}'
            '<path class="line" d="M{line}" vector-effect="non-scaling-stroke"/>',
            first_x=points[0].partition(",")[0],
            last_x=points[-1].partition(",")[0],
            height=HEIGHT,
            line=" L".join(points),
            limit=shapes,
        )
    return _svg("line", tone, label, shapes)


def bar_chart(values: Sequence[float], tone: str = "ink", label: str = "") -> SafeString:
    """Render values as bars; the last one, which is still growing, is emphasized."""
    max_value = max(values, default=0) or 1
    count = max(len(values), 1)
    width = WIDTH / count
    bars = (
        (
            "bar last" if index == count - 1 else "bar",
            f"{index * width + GAP / 2:.2f}",
            f"{HEIGHT - height:.2f}",
            f"{max(width - GAP, 1):.2f}",
            f"{height:.2f}",
        )
        for index, value in enumerate(values)
        if (height := max(MIN_BAR_HEIGHT, value / max_value * (HEIGHT - TOP)) if value else 0)
    )
    html = '<rect class="{}" x="{}" y="{}" width="{}" height="{}" rx="1"/>'
    return _svg("bars", tone, label, format_html_join("", html, bars))


def share_bar(value: float, max_value: float, tone: str = "violet") -> SafeString:
    """Render a horizontal bar, as long as the value's share of the largest one.

    It is hidden from screen readers, because its number is written beside it.
    """
    share = (
        max(MIN_SHARE, min(1.0, value / max_value) * SHARE_WIDTH) if max_value and value else 0
    )
    return format_html(
        '<svg class="share-bar" data-tone="{}" viewBox="0 0 {} {}" preserveAspectRatio="none"'
        ' aria-hidden="true"><rect class="track" width="100%" height="100%"/>'
        '<rect class="share" width="{}" height="100%"/></svg>',
        tone,
        SHARE_WIDTH,
        SHARE_HEIGHT,
        f"{share:.1f}",
    )


def _svg(kind: str, tone: str, label: str, shapes: SafeString) -> SafeString:
    role = format_html('role="img" aria-label="{}"', label) if label else 'aria-hidden="true"'
    return format_html(
        '<svg class="mini-chart" data-kind="{}" data-tone="{}" viewBox="0 0 {} {}"'
        ' preserveAspectRatio="none" {}>{}</svg>',
        kind,
        tone,
        WIDTH,
        HEIGHT,
        SafeString(role),
        shapes,
    )
