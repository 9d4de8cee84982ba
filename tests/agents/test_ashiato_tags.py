import pytest
from django.template.loader import render_to_string
from django.utils import timezone, translation

from agents.models import Run
from agents.web.presentation import RunView
from agents.web.presentation.formatting import cost, count, duration, is_scrollable
from agents.web.presentation.icons import icon
from agents.web.presentation.template_cache import rating, unstarted_run


@pytest.mark.parametrize(
    ("milliseconds", "written"),
    [
        (None, "—"),
        (0, "0.00 s"),
        (420, "0.42 s"),
        (9_994, "9.99 s"),
        (12_345, "12.3 s"),
        (59_940, "59.9 s"),
        (59_960, "1 min 00 s"),
        (65_000, "1 min 05 s"),
        (3_599_700, "1 h 00 min"),
        (7_620_000, "2 h 07 min"),
    ],
)
def test_durations_are_written_in_natural_units(milliseconds, written):
    assert duration(milliseconds) == written


def test_a_duration_is_written_in_the_readers_language():
    with translation.override("ja"):
        assert duration(420) == "0.42秒"


@pytest.mark.parametrize(
    ("dollars", "written"),
    [(None, "—"), (0, "$0"), (0.00001, "<$0.0001"), (0.0012, "$0.0012"), (1234.5, "$1,234.50")],
)
def test_an_unknown_cost_is_not_zero(dollars, written):
    assert cost(dollars) == written


def test_large_counts_are_grouped_and_none_is_a_dash():
    assert (count(1234), count(0), count(None)) == ("1,234", "—", "—")


def test_icons_are_hidden_from_screen_readers():
    assert 'aria-hidden="true"' in icon("tool")
    assert "#i-done" in icon("completed")


@pytest.mark.parametrize("language", ["en", "ja"])
def test_an_unrated_rating_equals_its_template(language):
    view = RunView(Run(pk=7, status="completed"), is_judged=False)

    with translation.override(language):
        assert rating(view) == render_to_string("run/_rating.html", {"view": view})
        assert 'id="rating-7"' in rating(view)


@pytest.mark.django_db
@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("model", ["demo", "openai/<large>"])
def test_an_unstarted_run_equals_its_template(language, model):
    began = timezone.now()
    for pk, agent in ((7, "guide"), (1234, "critic & co")):
        chosen = {"effort": "low"} if pk == 7 else {}
        about = {"agent_name": agent, "model": model, "max_steps": 8, "overrides": chosen}
        run = Run(pk=pk, started_at=began, **about)
        view = RunView(run, until=0, now=began)

        with translation.override(language):
            assert unstarted_run(view) == render_to_string("run/_run.html", {"view": view})


def test_long_or_multiline_text_is_scrollable():
    assert not is_scrollable("Why?", 120)
    assert is_scrollable("x" * 121, 120)
    assert is_scrollable("\n" * 7, 120)
