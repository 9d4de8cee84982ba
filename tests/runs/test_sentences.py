import copy
import json
import pickle
import re

import pytest
from django.utils import translation

from agents.access.masking import mask_value
from agents.db.sanitize import sanitize_event
from agents.db.sentences import translate
from agents.engine.events import Event, EventType
from agents.engine.plans.definition.definition import read_definition
from agents.engine.sentences import MARK, Sentence, as_error, joined, pack, unpack
from agents.llm.wire.provider_errors import REQUEST_REJECTED, StreamFailed, explain
from agents.metering.budgets.measures import limit_sentence
from agents.models import Run, RunEvent
from agents.models.sentence_fields import first_chars
from tests.runs import engine_sentences

KEY_REJECTED = Sentence(
    "The provider of %(model)s rejected the API key: %(words)s", model="'m'", words="401 %d"
)


class Refusal(Exception):
    """A provider's error with a status and no message."""

    def __init__(self, status: int) -> None:
        super().__init__("")
        self.status_code = status


def test_every_sentence_of_engine_models_and_tools_is_marked_for_translation():
    said = engine_sentences.sentences(*engine_sentences.ROOMS)

    assert {where: "{}".join(sentence) for sentence, where in said.items()} == {}


def test_every_ignored_text_is_still_in_use():
    texts = {"{}".join(said) for said in engine_sentences.strings(*engine_sentences.ROOMS)}

    assert engine_sentences.NOT_SAID - texts == set()


def test_a_sentence_is_a_text_that_remembers_its_template():
    error = ValueError(KEY_REJECTED)

    assert KEY_REJECTED == "The provider of 'm' rejected the API key: 401 %d"
    assert str(error) is KEY_REJECTED
    assert json.dumps(KEY_REJECTED) == json.dumps(f"{KEY_REJECTED}")


@pytest.mark.parametrize("carry", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_a_sentence_can_be_copied(carry):
    nested = as_error(KEY_REJECTED)

    carried = carry(nested)

    assert carried == nested
    assert carried.params["error"].template == KEY_REJECTED.template


def test_packed_sentences_are_read_back_however_deep_they_are():
    value = {"notes": [{"message": as_error(KEY_REJECTED), "seconds": 2}], "plain": "text"}

    read = unpack(json.loads(json.dumps(pack(value))))

    assert read == value
    assert read["notes"][0]["message"].params["error"].params == KEY_REJECTED.params


@pytest.mark.parametrize(("number", "words"), [(1, "1 run per day"), (2, "2 runs per day")])
def test_numbers_and_contexts_decide_about_the_translation(number, words):
    limit = limit_sentence("runs", number, "day")

    read = unpack(pack(copy.deepcopy(limit)))

    assert read == words
    with translation.override("ja"):
        assert translate(read) == f"1日あたり{number}回の実行"


def test_text_from_outside_cannot_pose_as_a_sentence():
    forged = MARK + json.dumps({"message": "Stopped.", "params": {}})
    event = Event(type=EventType.TOOL_RESPONSE, data={"content": forged, "list": [forged]})

    data = sanitize_event(event).data

    assert MARK not in data["content"] + data["list"][0]
    assert MARK not in pack(forged)


@pytest.mark.django_db
@pytest.mark.both_databases
def test_rows_keep_template_and_parameters():
    forged = MARK + json.dumps({"message": "Stopped.", "params": {}})
    run = Run.objects.create(query="?", detail=KEY_REJECTED, advice=forged)
    RunEvent.objects.create(
        run=run, seq=900, type="error", agent="a", time=run.started_at, data={"m": KEY_REJECTED}
    )

    read = Run.objects.get(pk=run.pk)
    shown = Run.objects.filter(pk=run.pk).values_list(first_chars("detail", 5), "advice").get()

    assert isinstance(read.detail, Sentence)
    assert read.detail == shown[0] == KEY_REJECTED
    assert RunEvent.objects.get(run=run, seq=900).data["m"].params == KEY_REJECTED.params
    assert not isinstance(read.advice, Sentence)
    assert Run.objects.filter(detail=KEY_REJECTED, detail__contains="API key").exists()


def test_a_sentence_is_translated_with_the_sentences_in_it():
    sentence = Sentence(
        "%(sentence)s Models tried: %(models)s.",
        sentence=Sentence("The model returned an empty response."),
        models="a, b",
    )

    with translation.override("ja"):
        assert translate(sentence) == "モデルの応答が空でした。 試したモデル：a, b。".replace(
            "。 ", "。"
        )


@pytest.mark.parametrize(
    "text",
    [
        "Row 5 doesn't match row 6",
        "The model returned an empty response.",
        "printf() needs a plain format, e.g. '%.2f' or '%05d'.",
    ],
)
def test_text_from_outside_is_never_translated(text):
    with translation.override("ja"):
        assert translate(text) == text
        assert translate(REQUEST_REJECTED.fill("m", text)).endswith(text)


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


def test_several_sentences_are_translated_as_one():
    sentences = joined("; ", [Sentence("The answer is empty."), "50% of it"])

    with translation.override("ja"):
        assert translate(sentences) == "回答が空です。; 50% of it"


def test_a_masked_sentence_can_still_be_translated():
    sentence = Sentence("There is no tool named %(name)s.", name="ann@example.com")

    masked = mask_value(sentence)

    assert masked == "There is no tool named ‹email›."
    assert masked.params == {"name": "‹email›"}


def test_plan_errors_have_translations():
    problems = read_definition(
        "name: w\nsteps: [{name: a, tool: x, depends_on: [b], condition: 1 <}]"
    ).problems

    assert len(problems) == 2
    assert all(isinstance(problem.message, Sentence) for problem in problems)
