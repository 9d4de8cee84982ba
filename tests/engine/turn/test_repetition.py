"""A model that repeats itself forever is stopped; long answers that go on aren't."""

import pytest

from agents.engine.errors import TruncatedReply
from agents.engine.planner.reply_readers import NativeReader, ReactReader
from agents.engine.testing import delta

PIECES = ["I'm sorry, I can't. ", "so ", " \n", "長い文です。" * 40]


def feed(reader, text, size=20, kind="content"):
    """Feed the reader as long as it wants, and return how many characters it read."""
    for start in range(0, len(text), size):
        if reader.is_done:
            return start
        reader.feed(delta(**{kind: text[start : start + size]}))
    return len(text)


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("make_reader", [NativeReader, ReactReader])
def test_a_reply_that_only_repeats_itself_is_ended(make_reader, piece):
    reader = make_reader()

    read = feed(reader, "Final Answer: Well. " + piece * (50_000 // len(piece)))

    assert read < 6_000
    reader.rest()
    assert (
        reader.result().turn.caveat == "The model repeated itself, so its answer was stopped."
    )


def test_a_model_that_only_thinks_in_circles_has_no_answer():
    reader = NativeReader()
    feed(reader, "But wait. " * 5_000, kind="reasoning_content")

    with pytest.raises(TruncatedReply, match="repeated itself and didn't answer"):
        reader.result()


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"{number}. I'm sorry.\n" for number in range(2_000)),
        "| a | b |\n" * 200 + "The end. ",
        ("The sea is calm. " * 20 + "A bird calls. ") * 3,
    ],
)
def test_a_long_answer_that_goes_on_is_read_to_its_end(text):
    reader = NativeReader()

    assert feed(reader, text) == len(text)
    assert reader.result().turn.caveat == ""
