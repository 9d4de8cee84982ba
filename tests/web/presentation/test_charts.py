"""Charts drawn on the server."""

from agents.web.presentation.formats import charts


def test_a_line_bridges_gaps_and_has_a_label():
    html = charts.sparkline([1, None, 3], "red", "Cost: <b>")

    assert 'aria-label="Cost: &lt;b&gt;"' in html
    assert 'd="M0.0,38.7 L240.0,4.0"' in html
    assert "style" not in html


def test_a_line_without_values_is_empty():
    assert "<path" not in charts.sparkline([None, None])


def test_bars_have_the_height_of_their_values():
    html = charts.bar_chart([0, 1, 2])

    assert html.count("<rect") == 2
    assert 'height="26.00"' in html
    assert 'class="bar last"' in html
    assert 'aria-hidden="true"' in html


def test_a_share_is_never_longer_than_its_track():
    assert 'width="100.0"' in charts.share_bar(3, 2)
    assert 'width="0.0"' in charts.share_bar(0, 2)
