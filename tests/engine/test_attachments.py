"""Attachments of tool results: saved once, and sent to models that can use them."""

import json
from base64 import b64encode
from dataclasses import replace

import pytest

from agents.engine import (
    ReActPlanner,
    ToolResult,
    attachments,
)
from agents.engine.attachments import MemoryAttachmentStore, image_size, token_count
from agents.engine.events import EventType
from agents.engine.loop import Attachments
from agents.engine.planner import message_attachments
from agents.engine.privacy.pseudonyms import Pseudonymizer
from agents.engine.privacy.redaction import redact
from agents.engine.state import AgentState
from agents.engine.testing import Says, ScriptedModel
from agents.engine.tool import Attachment
from tests.engine.conftest import Echo, make_runtime
from tests.engine.loop.test_approval import _reload_event, collect_events
from tests.engine.loop.test_takeover import Steady, check
from tests.pictures import png, wav

PICTURE = Attachment(data=png(), mime_type="image/png", name="chart.png")
SOUND = Attachment(data=wav(), mime_type="audio/wav")
MARK = f"[image: chart.png, image/png, {len(png())} bytes]"
URL = f"data:image/png;base64,{b64encode(png()).decode()}"
CALL = Says.call("draw", text="a chart")
ANSWER = Says(answer="It goes up.")


def drawing(*found, text="Here it is.", **more):
    async def draw(input):
        return ToolResult(text, attachments=found or (PICTURE,), **more)

    return Echo("draw", draw)


def runtime(dialect, tool, senses=("image",), model=None, store=None, **options):
    model = model or ScriptedModel(CALL, ANSWER, dialect=dialect)
    planner = ReActPlanner(model, "scripted", dialect=dialect, senses=senses, **options)
    return make_runtime(planner, [tool], capabilities=[Attachments(store)])


async def last_request(dialect, tool, **options):
    model = ScriptedModel(CALL, ANSWER, dialect=dialect)
    await collect_events(runtime(dialect, tool, model=model, **options).stream("Draw"))
    return model.requests[-1]["messages"]


def images(messages):
    parts = [part for m in messages if isinstance(m["content"], list) for part in m["content"]]
    return [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]


async def test_events_have_references_and_no_bytes(dialect):
    events = await collect_events(runtime(dialect, drawing()).stream("Draw"))

    response = next(event for event in events if event.type is EventType.TOOL_RESPONSE)
    [ref] = response.data["attachments"]
    about = {"name": "chart.png", "kind": "image", "mime_type": "image/png"}
    assert ref == {
        **about,
        "digest": ref["digest"],
        "size": len(png()),
        "width": 3,
        "height": 2,
    }
    assert response.data["content"] == f"Here it is.\n{MARK}"
    assert "base64" not in json.dumps([event.to_dict() for event in events])


async def test_a_vision_model_is_sent_the_image(dialect):
    messages = await last_request(dialect, drawing())

    assert images(messages) == [URL]
    assert messages[-1]["role"] == "user"
    assert MARK in messages[-1]["content"][0]["text"]
    if dialect == "native":
        assert "draw (call c0)" in messages[-1]["content"][0]["text"]
        assert messages[-2]["role"] == "tool"
    assert all("attachments" not in message for message in messages)


async def test_a_text_model_gets_a_note_instead_of_the_image(dialect):
    messages = await last_request(dialect, drawing(PICTURE, SOUND), senses=())

    text = str(messages)
    assert f"{MARK[:-1]}; this model can't see images]" in text
    assert "; this model can't hear audio]" in text
    assert images(messages) == []


async def test_the_step_lists_attachments_the_model_was_not_sent(dialect):
    agent = runtime(dialect, drawing(PICTURE, SOUND, PICTURE), senses=())

    events = await collect_events(agent.stream("Draw"))

    status = [event.data for event in events if event.type is EventType.STATUS]
    about = [(data["kind"], data["count"], data["message"]) for data in status]
    assert about == [
        ("unsent_attachments", 2, "this model can't see images"),
        ("unsent_attachments", 1, "this model can't hear audio"),
    ]


async def test_audio_is_sent_in_the_providers_format(dialect):
    messages = await last_request(dialect, drawing(SOUND), senses=("audio",))

    sent = {"data": b64encode(wav()).decode(), "format": "wav"}
    assert messages[-1]["content"][-1] == {"type": "input_audio", "input_audio": sent}


async def test_results_of_one_turn_stay_together_and_their_images_follow():
    turn = Says(calls=(*CALL.calls, *CALL.calls))
    model = ScriptedModel(turn, ANSWER)

    await collect_events(runtime("native", drawing(), model=model).stream("Draw"))

    sent = model.requests[-1]["messages"]
    assert [m["role"] for m in sent] == ["user", "assistant", "tool", "tool", "user"]
    assert images(sent) == [URL, URL]


async def test_a_run_that_masks_personal_data_sends_no_image(dialect):
    messages = await last_request(dialect, drawing(), pseudonymizer=Pseudonymizer())

    assert images(messages) == []
    assert "this agent masks personal data" in str(messages)


async def test_only_the_newest_images_are_sent(monkeypatch, dialect):
    monkeypatch.setattr(message_attachments, "MAX_ATTACHMENTS", 1)
    other = replace(PICTURE, data=png(shade=1), name="new.png")
    found = [drawing(), drawing(other)]
    tool = Echo("draw", lambda input: found.pop(0).does(input))
    model = ScriptedModel(CALL, Says.call("draw", text="more"), ANSWER, dialect=dialect)
    store = MemoryAttachmentStore()
    agent = runtime(dialect, tool, model=model, store=store)

    await collect_events(agent.stream("Draw"))

    sent = model.requests[-1]["messages"]
    assert images(sent) == [f"data:image/png;base64,{b64encode(png(shade=1)).decode()}"]
    assert f"{MARK[:-1]}; {message_attachments.LEFT_OUT}]" in str(sent)


async def test_a_run_interrupted_after_any_event_still_sends_the_image(dialect):
    store = MemoryAttachmentStore()

    def build():
        return runtime(dialect, drawing(), model=Steady(dialect, CALL, ANSWER), store=store)

    whole = await collect_events(build().stream("Draw"))
    for cut in range(1, len(whole)):
        past, again = [_reload_event(event) for event in whole[:cut]], build()
        events = [*past, *await collect_events(again.resume(past))]

        check(events)
        if again.planner.llm.requests:
            assert images(again.planner.llm.requests[-1]["messages"]) == [URL], cut


async def test_a_deleted_attachment_is_named_in_the_request(dialect):
    whole = await collect_events(runtime(dialect, drawing()).stream("Draw"))
    at = [event.type for event in whole].index(EventType.TOOL_RESPONSE)
    model = ScriptedModel(ANSWER, dialect=dialect)

    await collect_events(runtime(dialect, drawing(), model=model).resume(whole[: at + 2]))

    assert f"{MARK[:-1]}; no longer available]" in str(model.requests[-1]["messages"])


async def test_an_image_can_be_left_out_for_the_context_window():
    state = AgentState()
    state.add_message("user", "Draw")
    state.add_message("assistant", "", tool_calls=[{"id": "a", "function": {"name": "draw"}}])
    ref = attachments.reference(replace(PICTURE, data=png(2_000, 2_000)))
    mark = attachments.placeholder(ref)
    state.add_message("tool", f"Here it is.\n{mark}", tool_call_id="a", attachments=[ref])

    def request(window):
        planner = ReActPlanner(ScriptedModel(), "m", senses=["image"], window=window)
        return planner.request("Draw", state, [])

    assert request(2_667).messages[-1]["attachments"] == [ref]
    narrow = request(1_333)
    assert (narrow.messages[-1]["role"], narrow.shortened) == ("tool", 1)
    assert message_attachments.LEFT_OUT in narrow.messages[-1]["content"]


@pytest.mark.parametrize(
    ("limit", "most", "sentence"),
    [
        ("MAX_ATTACHMENT_BYTES", 10, "too large to save (limit 10 bytes)"),
        ("MAX_RESULT_BYTES", 100, "the limit per result is 100 bytes"),
        ("MAX_RESULT_ATTACHMENTS", 1, "the limit per result is 1 attachments"),
        ("MAX_RUN_BYTES", 100, "the limit per run is 100 bytes"),
    ],
)
async def test_limits_are_explained_in_the_text(monkeypatch, limit, most, sentence):
    monkeypatch.setattr(attachments, limit, most)
    other = replace(PICTURE, data=png(shade=1), name="other.png")
    result = ToolResult("Here", attachments=(PICTURE, other))

    saved, refs = await attachments.save_all(result, MemoryAttachmentStore())

    assert sentence in saved.output
    assert sentence in refs[-1]["problem"]
    assert refs[-1]["digest"] == ""


async def test_the_same_bytes_are_saved_once(monkeypatch):
    monkeypatch.setattr(attachments, "MAX_RUN_BYTES", len(png()))
    store = MemoryAttachmentStore()

    first, again = await store.save(PICTURE), await store.save(PICTURE)

    assert first == again
    assert await store.load(first["digest"]) == png()


async def test_structured_output_is_unchanged_by_attachments():
    result = ToolResult('{"a": 1}', is_data=True, attachments=(PICTURE,))

    saved, refs = await attachments.save_all(result, MemoryAttachmentStore())

    assert (saved.output, len(refs)) == ('{"a": 1}', 1)


async def test_a_file_name_is_redacted_with_the_rest(dialect):
    secret = replace(PICTURE, name="ann@example.com.png")
    events = await collect_events(redact(runtime(dialect, drawing(secret)).stream("Draw")))

    assert "ann@example.com" not in str([event.to_dict() for event in events])


def test_images_are_counted_by_their_size_on_screen():
    def tokens(width, height):
        ref = attachments.reference(replace(PICTURE, data=png(width, height)))
        return token_count([ref])

    assert tokens(3, 2) == 85
    assert tokens(900, 500) == 600
    assert tokens(3_000, 3_000) == 1_600


def jpeg(width, height):
    table = b"\xff\xc4\x00\x04ab"
    frame = b"\xff\xc0\x00\x11\x08" + height.to_bytes(2) + width.to_bytes(2) + b"\x03"
    return b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(10) + table + frame


@pytest.mark.parametrize(
    "data",
    [
        png(30, 20),
        b"GIF89a" + (30).to_bytes(2, "little") + (20).to_bytes(2, "little"),
        jpeg(30, 20),
        b"RIFFsizeWEBPVP8X" + bytes(8) + b"\x1d\x00\x00\x13\x00\x00",
        b"RIFFsizeWEBPVP8L" + bytes(5) + (29 | 19 << 14).to_bytes(4, "little") + bytes(9),
        b"RIFFsizeWEBPVP8 " + bytes(10) + b"\x1e\x00\x14\x00",
    ],
)
def test_an_image_knows_its_size(data):
    assert image_size(data) == (30, 20)


@pytest.mark.parametrize("data", [png()[:20], b"\xff\xd8\xff", b"", b"GIF89a"])
def test_a_truncated_image_has_no_size(data):
    assert image_size(data) is None


async def test_a_hundred_thousand_attachments_are_not_listed_and_do_not_block():
    many = tuple(replace(PICTURE, name=f"{number}.png") for number in range(100_000))
    result, refs = await attachments.save_all(
        ToolResult("Here.", attachments=many), MemoryAttachmentStore()
    )

    assert len(refs) == attachments.MAX_LISTED_ATTACHMENTS
    assert sum(bool(ref["digest"]) for ref in refs) == attachments.MAX_RESULT_ATTACHMENTS
    assert result.output.endswith(
        "[99,900 more attachments; not saved: the limit per result is 20 attachments]"
    )


def test_a_jpeg_of_a_million_segments_has_no_size():
    frame = b"\xff\xc0\x00\x11\x08\x00\x10\x00\x20" + bytes(10)

    assert image_size(b"\xff\xd8" + b"\xff\xe0\x00\x02" * 50 + frame) == (32, 16)
    assert image_size(b"\xff\xd8" + b"\xff\xe0\x00\x02" * 1_000 + frame) is None
