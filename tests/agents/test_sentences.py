import time
from unittest.mock import patch

import pytest
from django.utils import translation

from agents.catalog.agent_factory import NoAgentAvailable
from agents.engine import errors
from agents.engine.plans.definition import read_definition
from agents.llm.provider_errors import explain
from agents.runs.engine_messages import MESSAGE_TEMPLATES, SENTENCES, translate


def test_every_sentence_of_an_error_is_known_to_the_translators():
    named = [e for e in vars(errors).values() if isinstance(e, type)]
    kinds = [e for e in named if issubclass(e, errors.AgentError)] + [NoAgentAvailable]

    said = {kind.__doc__ for kind in kinds} | {kind.advice for kind in kinds}

    assert said - {"", *SENTENCES} == set()


@pytest.mark.parametrize(
    ("said", "told_in_japanese"),
    [
        (str(explain(ConnectionError(), model="openai/x")), "openai/x"),
        ("It matches the rule 'bad'.", "規則 'bad' に一致しました。"),
        ("Check the API key of this model.", "このモデルの API キーを確認してください。"),
        ("Nobody has ever said this.", "Nobody has ever said this."),
    ],
)
def test_a_sentence_is_told_in_the_readers_language(said, told_in_japanese):
    with translation.override("ja"):
        assert told_in_japanese in translate(said)


def test_a_sentence_that_is_known_word_for_word_has_no_places():
    is_a_form = [form for form in MESSAGE_TEMPLATES if form.match("A name is text.")]

    with translation.override("de"), patch("agents.runs.engine_messages.gettext", str.upper):
        words = translate("A name is text.")

    assert is_a_form
    assert words == "A NAME IS TEXT."


def test_the_places_of_a_sentence_are_filled_again():
    said = "Could not reach the model 'a' at b:1: the connection was refused."

    with translation.override("ja"):
        words = translate(said)

    assert "'a' at b:1" in words
    assert "接続が拒否されました" in words
    assert translate(said) == said


def test_a_sentence_as_long_as_a_book_is_left_alone():
    assert translate("It is " * 100_000) == "It is " * 100_000


def test_what_is_wrong_with_a_plan_is_known_to_the_translators():
    problem = read_definition(
        "name: w\nsteps: [{name: a, tool: x, depends_on: [b], condition: 1 <}]"
    ).problems

    forms = [[form for form in MESSAGE_TEMPLATES if form.match(p.message)] for p in problem]

    assert len(forms) == 2
    assert all(forms)


def test_a_sentence_with_many_blanks_is_looked_through_at_once():
    begun = time.process_time()

    for _ in range(10):
        assert translate("ab cd " * 160) == "ab cd " * 160

    assert time.process_time() - begun < 3
