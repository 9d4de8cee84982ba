import re
import time
from itertools import count
from unittest.mock import patch

import pytest
from django.utils import translation

from agents.engine.plans.definition import read_definition
from agents.llm.provider_errors import (
    NOT_CONNECTED,
    REQUEST_REJECTED,
    UNREACHABLE_REASONS,
    StreamFailed,
    explain,
)
from agents.runs.engine_messages import (
    MESSAGE_TEMPLATES,
    translate,
)
from agents.runs.engine_messages.templates import EXACT_SENTENCES, TEMPLATES
from tests.agents import engine_sentences

# Used by packages above the engine, by a library, or one word long.
SAID_ELSEWHERE = ("agents", "chat")
YAML_WORDS = {
    "control characters are not allowed",
    "mapping values are not allowed in this context",
    "could not find expected ':'",
    "did not find expected key",
    "did not find expected '-' indicator",
    "did not find expected node content",
    "did not find expected ',' or ']'",
    "did not find expected ',' or '}'",
    "found unexpected end of stream",
    "found character that cannot start any token",
    "found undefined tag handle",
}
KNOWN = {
    **{engine_sentences.template_skeleton(template): template for template in TEMPLATES},
    **{(sentence,): sentence for sentence in EXACT_SENTENCES},
}


class Refusal(Exception):
    """A provider's error with a status and no message."""

    def __init__(self, status: int) -> None:
        super().__init__("")
        self.status_code = status


def fill_template(template: str) -> str:
    """Return the template with a value in each placeholder."""
    places = count()
    return re.sub(r"%\(\w+\)s", lambda _: f"‹{next(places)}›", template).replace("%%", "%")


def test_every_message_of_engine_models_and_tools_has_a_template():
    said = engine_sentences.sentences(*engine_sentences.ROOMS)

    missing = {where: "{}".join(s) for s, where in said.items() if s not in KNOWN}

    assert len(said) > 400
    assert missing == {}, "Add these to agents/runs/engine_messages/templates/."


def test_every_error_that_ends_a_run_has_a_translation():
    errors = engine_sentences.error_sentences("agents/catalog", "agents/runs")

    assert len(errors) > 5
    assert {words for words in errors if (words,) not in KNOWN} == set()


def test_every_template_is_still_in_use():
    said = engine_sentences.strings(*SAID_ELSEWHERE)

    stale = {words for skeleton, words in KNOWN.items() if skeleton not in said}

    assert stale - YAML_WORDS == set(), "Nothing says these any more."


def test_every_ignored_text_is_still_in_use():
    texts = {"{}".join(said) for said in engine_sentences.strings(*engine_sentences.ROOMS)}

    assert engine_sentences.NOT_SAID - texts == set()


def test_a_message_is_matched_by_its_own_template_first():
    messages = {template: fill_template(template) for template in TEMPLATES}
    found = {
        template: next(form.template for form in MESSAGE_TEMPLATES if form.match(message))
        for template, message in messages.items()
    }

    assert {own: first for own, first in found.items() if own != first} == {}


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
def test_a_provider_error_without_a_message_is_translated(status):
    error = explain(Refusal(status), model="openai/x")

    with translation.override("ja"):
        told, advice = translate(str(error)), translate(error.advice)

    assert "'openai/x'" in told
    assert not re.search("provider|rejected|error", told.replace("'openai/x'", ""))
    assert told.endswith("。")
    assert re.search(r"[ぁ-ん]", advice)


def test_a_stream_error_without_a_message_is_translated():
    error = explain(StreamFailed({"code": 500, "message": ""}), model="openai/x")

    with translation.override("ja"):
        assert translate(str(error)).startswith("'openai/x'のプロバイダーがエラーを返しました")


def test_the_text_of_a_provider_is_not_translated():
    said = REQUEST_REJECTED.fill("m", "This number is too large.")

    with translation.override("ja"):
        assert translate(said).endswith("：This number is too large.")


@pytest.mark.parametrize(
    ("said", "told_in_japanese"),
    [
        (str(explain(ConnectionError(), model="openai/x")), "openai/x"),
        ("Matched rule 'bad'.", "ルール'bad'に一致しました。"),
        ("Check this model's API key.", "このモデルのAPIキーを確認してください。"),
        ("Nobody has ever said this.", "Nobody has ever said this."),
    ],
)
def test_a_message_is_translated_to_the_readers_language(said, told_in_japanese):
    with translation.override("ja"):
        assert told_in_japanese in translate(said)


def test_a_message_without_placeholders_is_matched_literally():
    is_a_form = [form for form in MESSAGE_TEMPLATES if form.match("Keys must be text.")]

    with (
        translation.override("de"),
        patch("agents.runs.engine_messages.gettext", str.upper),
    ):
        words = translate("Keys must be text.")

    assert is_a_form
    assert words == "KEYS MUST BE TEXT."


def test_placeholders_of_a_message_are_filled():
    said = NOT_CONNECTED.format(where="'a' at b:1", reason=UNREACHABLE_REASONS["ConnectError"])

    with translation.override("ja"):
        words = translate(said)

    assert "'a' at b:1" in words
    assert "接続が拒否されました" in words
    assert translate(said) == said


def test_text_appended_to_a_message_is_translated():
    said = "helper couldn't finish: The model returned an empty answer. Models tried: a, b."

    with translation.override("ja"):
        words = translate(said)

    assert words == (
        "helperは完了できませんでした：モデルが空の回答を返しました。試したモデル：a, b。"
    )


def test_percent_signs_are_kept():
    said = "printf() needs a plain format, e.g. '%.2f' or '%05d'."

    assert translate(said) == said


def test_a_very_long_message_is_not_translated():
    assert translate("It is " * 100_000) == "It is " * 100_000


def test_plan_errors_have_translations():
    problem = read_definition(
        "name: w\nsteps: [{name: a, tool: x, depends_on: [b], condition: 1 <}]"
    ).problems

    forms = [[form for form in MESSAGE_TEMPLATES if form.match(p.message)] for p in problem]

    assert len(forms) == 2
    assert all(forms)


def test_a_message_with_many_spaces_is_matched_quickly():
    begun = time.process_time()

    for _ in range(10):
        assert translate("ab cd " * 160) == "ab cd " * 160

    assert time.process_time() - begun < 3
