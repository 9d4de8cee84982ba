"""Lessons reach the questions they fit, and hardly any others."""

import pytest

from agents.memory import texts

from .lesson_matching import measure
from .lesson_questions import CONTROLS, FITTING

pytestmark = [pytest.mark.slow, pytest.mark.django_db]


def test_there_are_enough_questions():
    assert len(FITTING) >= 20
    assert len(CONTROLS) >= 40


@pytest.mark.parametrize("with_meaning", [True, False])
def test_held_out_questions_get_what_fits_and_controls_hardly_anything(with_meaning):
    figures = measure(is_held_out=True, with_meaning=with_meaning)

    assert figures.precision >= 0.85
    assert figures.recall >= (0.9 if with_meaning else 0.7)
    assert figures.disturbed <= figures.controls // 10


def test_a_number_is_a_word_of_its_own_before_japanese():
    assert {"2025", "流通"} <= texts.words("2025年の流通総額")
