"""Bytes in, events out, however they are split."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.llm.wire import json_codec, sse
from agents.llm.wire.provider_errors import StreamGarbled
from agents.llm.wire.sse import EventReader


def read(*pieces):
    reader = EventReader()
    return [data for piece in [*filter(None, pieces), b""] for data in reader.feed(piece)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_kind_of_line_ending_is_accepted(end):
    stream = end.join([b"data: 1", b"", b"data: 2", b"", b""])

    assert read(stream) == [b"1", b"2"]


@pytest.mark.parametrize(
    ("stream", "data"),
    [
        (b"data: 1\n\ndata:2\n\n", [b"1", b"2"]),
        (b"data:  1\n\n", [b" 1"]),
        (b"data:\n\ndata: 1\n\n", [b"1"]),
        (b"\xef\xbb\xbfdata: 1\n\n", [b"1"]),
        (b"\n\n\ndata: 1\n\n", [b"1"]),
        (b": OPENROUTER PROCESSING\n\ndata: 1\n\n: ping\n\n", [b"1"]),
        (b"event: message\nid: 7\nretry: 100\ndata: 1\n\n", [b"1"]),
        (b'data: {\ndata: "a": 1}\n\n', [b'{\n"a": 1}']),
        (b"data: [DONE]", [b"[DONE]"]),
        (b"datum: 1\n\nevent: x\n\n", []),
        (b"", []),
    ],
)
def test_events_follow_the_sse_standard(stream, data):
    assert read(stream) == data


def test_a_crlf_split_over_two_chunks_is_one_line_ending():
    assert read(b"data: {\r", b"\ndata: 1}\r\n\r", b"\n") == [b"{\n1}"]


def test_events_without_an_empty_line_between_them_are_separate():
    assert read(b'data: {"a": 1}\ndata: {"b": 2}\ndata: [DONE]\n\n') == [
        b'{"a": 1}',
        b'{"b": 2}',
        b"[DONE]",
    ]


@pytest.mark.parametrize("indent", [None, 2])
def test_an_object_that_was_not_streamed_is_one_event(indent):
    whole = json.dumps({"choices": [{"message": {"content": "hi"}}]}, indent=indent)

    assert [json.loads(data) for data in read(whole.encode())] == [json.loads(whole)]


def test_json_lines_are_events():
    assert read(b'{"a": 1}\n{"b": 2}\n') == [b'{"a": 1}', b'{"b": 2}']


def test_a_bare_object_between_events_is_an_event():
    assert read(b'data: 1\n\n{"error": "boom"}\n') == [b"1", b'{"error": "boom"}']


def test_an_html_page_is_not_a_stream():
    with pytest.raises(StreamGarbled):
        read(b"<!DOCTYPE html>\n<title>Log in</title>\n")


def test_an_endless_event_is_rejected():
    pieces = [b"data: ", *[b"x" * 1024 * 1024] * (sse.MAX_EVENT_BYTES // 1024 // 1024)]
    with pytest.raises(StreamGarbled):
        read(*pieces)


def test_an_event_with_too_many_lines_is_rejected():
    lines = b"data: %b\n" % (b"x" * 1000) * 1000
    with pytest.raises(StreamGarbled):
        read(*[lines] * 20)


def test_a_stream_can_be_longer_than_the_event_limit():
    reader = EventReader()
    event = b"data: %b\n\n" % (b"x" * 1024 * 1024)
    split = [event[-9:] + event[:-9]] * 20

    assert sum(len(reader.feed(piece)) for piece in split) >= 19


CHUNKS = st.lists(
    st.dictionaries(st.sampled_from(["content", "ключ", "鍵"]), st.text(max_size=20)),
    max_size=6,
)
BETWEEN = st.sampled_from(["", ": ping", "event: x", "id: 1", ": 待って"])


@st.composite
def streams(draw):
    """Draw a stream of chunks in any server's style, split anywhere."""
    chunks = draw(CHUNKS)
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    lines = [draw(st.sampled_from(["", "\ufeff"])) + draw(BETWEEN)]
    for chunk in chunks:
        text = json.dumps(chunk, ensure_ascii=draw(st.booleans()))
        spread = text.replace(", ", ",\n", 1).split("\n") if draw(st.booleans()) else [text]
        lines += [*(f"data: {part}" for part in spread), "", draw(BETWEEN), ""]
    whole = end.join([*lines, "data: [DONE]", "", ""]).encode()
    cuts = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=12)))
    return chunks, [whole[a:b] for a, b in zip([0, *cuts], [*cuts, None], strict=True)]


@given(streams())
def test_any_chunking_gives_the_same_events(case):
    chunks, pieces = case
    *events, done = read(*pieces)

    assert [json_codec.decode(data) for data in events] == chunks
    assert done == b"[DONE]"


@given(st.binary(max_size=300), st.integers(1, 7))
def test_any_bytes_are_read_without_an_exception(noise, size):
    def attempt(*pieces):
        try:
            return read(*pieces)
        except StreamGarbled:
            return "garbled"

    assert attempt(noise) == attempt(*(noise[at : at + size] for at in range(0, 300, size)))


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a": 1}', {"a": 1}),
        (b'"\xff"', "\ufffd"),
        (rb'"\ud800"', "\ud800"),
        ('"日本"'.encode(), "日本"),
    ],
)
def test_lenient_json_is_read(data, value):
    assert json_codec.decode(data) == value


@pytest.mark.parametrize("data", [b"", b"{oops", b"[" * 100_000])
def test_invalid_json_raises_garbled(data):
    with pytest.raises(StreamGarbled):
        json_codec.decode(data)


@pytest.mark.parametrize("text", ["日本", "half \ud83d", "\x00"])
def test_any_conversation_can_be_encoded(text):
    assert json.loads(json_codec.encode({"a": text, "n": 2**80})) == {"a": text, "n": 2**80}


def test_several_values_are_decoded_at_once():
    assert json_codec.decode_all([b'{"a": 1}', b'"\xff"', b"null"]) == [
        {"a": 1},
        "\ufffd",
        None,
    ]


@pytest.mark.parametrize(
    "several", [[b"1", b"{oops"], [b"[1", b"2]"], [b"1, 2", b"3"], [b"1", b""]]
)
def test_values_that_cannot_be_decoded_at_once_return_none(several):
    assert json_codec.decode_all(several) is None
