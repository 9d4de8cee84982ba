"""Splitting of socket frames."""

from unittest.mock import AsyncMock

import pytest
from channels.consumer import AsyncConsumer

from agents.web.consumers import LiveConsumer, frames


def row(name, size=200_000):
    text = "あ" * (size // 3)
    return f'<li id="{name}"><b title="a > b">{text}</b><br><input><rect x="1"/></li>'


def test_a_short_frame_is_unchanged():
    assert frames.split_frames("<p>one</p> and <p>another</p>") == [
        "<p>one</p> and <p>another</p>"
    ]


def test_a_long_frame_is_sent_in_whole_elements():
    rows = [row(name) for name in "abcde"]

    sent = frames.split_frames("".join(rows))

    assert sent == [rows[0] + rows[1], rows[2] + rows[3], rows[4]]
    assert max(len(frame.encode()) for frame in sent) <= frames.MAX_FRAME_BYTES


def test_an_oversized_element_is_replaced_by_a_note_and_logged(caplog):
    [sent] = frames.split_frames(row("a") + row("b", 2_000_000) + row("c"), "en")

    mark = '<li id="b"><p class="too-long">This part is too long to display here. '
    assert sent.startswith(row("a") + mark)
    assert sent.endswith("</li>" + row("c"))
    assert 'is too large to send: <li id="b">' in caplog.text


def test_an_oversized_tag_is_left_out():
    tag = f'<p id="a" title="{"b" * 600_000}"></p>'

    assert frames.split_frames(tag + row("c")) == [row("c")]


@pytest.mark.parametrize("size", [10, 3_000_000])
async def test_every_frame_of_a_socket_is_split(monkeypatch, size):
    sent = AsyncMock()
    monkeypatch.setattr(AsyncConsumer, "send", sent)

    await LiveConsumer().send("".join(row(str(at), size // 10) for at in range(10)))

    texts = [call.args[1 if len(call.args) > 1 else 0]["text"] for call in sent.await_args_list]
    assert max(len(text.encode()) for text in texts) <= frames.MAX_FRAME_BYTES
    assert "".join(texts).count("<li") == 10
