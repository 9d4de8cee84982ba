"""Every frame of a socket passes one gate."""

from unittest.mock import AsyncMock

import pytest
from channels.consumer import AsyncConsumer

from agents import frames
from agents.consumers import WatchingConsumer


def row(name, size=200_000):
    text = "あ" * (size // 3)
    return f'<li id="{name}"><b title="a > b">{text}</b><br><input><rect x="1"/></li>'


def test_a_short_frame_stays_as_it_is():
    assert frames.bounded("<p>one</p> and <p>another</p>") == ["<p>one</p> and <p>another</p>"]


def test_a_long_frame_is_sent_in_whole_elements():
    rows = [row(name) for name in "abcde"]

    sent = frames.bounded("".join(rows))

    assert sent == [rows[0] + rows[1], rows[2] + rows[3], rows[4]]
    assert max(len(frame.encode()) for frame in sent) <= frames.MOST_SENT


def test_an_element_that_fits_in_no_frame_is_not_sent_and_that_is_logged(caplog):
    assert frames.bounded(row("a") + row("b", 2_000_000) + row("c")) == [row("a") + row("c")]
    assert 'is not sent: <li id="b">' in caplog.text


@pytest.mark.parametrize("size", [10, 3_000_000])
async def test_a_socket_sends_nothing_past_the_gate(monkeypatch, size):
    sent = AsyncMock()
    monkeypatch.setattr(AsyncConsumer, "send", sent)

    await WatchingConsumer().send("".join(row(str(at), size // 10) for at in range(10)))

    texts = [call.args[1 if len(call.args) > 1 else 0]["text"] for call in sent.await_args_list]
    assert max(len(text.encode()) for text in texts) <= frames.MOST_SENT
    assert "".join(texts).count("<li") == 10
