"""What an MCP tool returns besides text: images, sounds, files and links."""

import asyncio
from base64 import b64encode

import mcp_types as wire
import pytest

from agents.engine.attachments import MAX_ATTACHMENT_BYTES
from agents.tools.mcp.connection import results
from tests.pictures import png, wav

PDF = b"%PDF-1.7 and so on"


def encoded(data):
    return b64encode(data).decode()


def image(data, mime_type="image/png"):
    return wire.ImageContent(type="image", data=data, mime_type=mime_type)


def embedded(**contents):
    kind = wire.BlobResourceContents if "blob" in contents else wire.TextResourceContents
    return wire.EmbeddedResource(type="resource", resource=kind(**contents))


def link(uri="file:///a.csv", **about):
    return wire.ResourceLink(type="resource_link", name="a.csv", uri=uri, **about)


async def read(*blocks, reader=None, **more):
    answer = wire.CallToolResult(content=list(blocks), **more)
    return await results.to_tool_result(answer, read_resource=reader)


async def test_images_audio_and_files_are_attached():
    sound = wire.AudioContent(type="audio", data=encoded(wav()), mime_type="audio/x-wav")
    file = embedded(uri="file:///a%20b/r.pdf", blob=encoded(PDF), mime_type="application/pdf")

    result = await read(image(encoded(png())), sound, file)

    kinds = [(a.kind, a.mime_type, a.name, a.data) for a in result.attachments]
    assert kinds == [
        ("image", "image/png", "", png()),
        ("audio", "audio/wav", "", wav()),
        ("file", "application/pdf", "r.pdf", PDF),
    ]
    assert result.output.splitlines() == [
        f"[image: image/png, {len(png())} bytes]",
        f"[audio: audio/wav, {len(wav())} bytes]",
        f"[file: r.pdf, application/pdf, {len(PDF)} bytes]",
    ]


@pytest.mark.parametrize(
    ("data", "declared", "kind", "found"),
    [
        (png(), "image/jpeg", "image", "image/png"),
        (png(), "", "image", "image/png"),
        (png(), "text/html", "image", "image/png"),
        (b"<svg/>", "image/svg+xml", "file", "image/svg+xml"),
        (b"<script>", "image/png", "file", "application/octet-stream"),
        (b"junk", "not a type", "file", "application/octet-stream"),
        (b"BM junk", "image/bmp; x=1", "file", "image/bmp"),
    ],
)
async def test_the_media_type_is_detected_from_the_content(data, declared, kind, found):
    result = await read(image(encoded(data), declared))

    [attachment] = result.attachments
    assert (attachment.kind, attachment.mime_type) == (kind, found)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ("###", "[image: image/png; the server's base64 is invalid]"),
        ("", "[image: image/png; it is empty]"),
        (
            "A" * (MAX_ATTACHMENT_BYTES * 4 // 3 + 8),
            "[image: image/png, 5.0 MB; too large to save (limit 5.0 MB)]",
        ),
    ],
)
async def test_content_that_cannot_be_attached_is_explained(data, sentence):
    result = await read(image(data))

    assert (result.output, result.attachments) == (sentence, ())


async def test_an_image_of_a_failed_call_is_attached_as_well():
    why = wire.TextContent(type="text", text="Not found:")

    result = await read(why, image(encoded(png())), is_error=True)

    assert result.error == f"Not found:\n[image: image/png, {len(png())} bytes]"
    assert len(result.attachments) == 1


async def test_text_resources_stay_text():
    result = await read(embedded(uri="memo://1", text="Buy milk."))

    assert (result.output, result.attachments) == ("[resource: memo://1]\nBuy milk.", ())


def resources(**found):
    async def reader(uri):
        return found.get(uri.rpartition("/")[2])

    return reader


async def test_a_linked_resource_is_described_and_read():
    blob = wire.BlobResourceContents(uri="file:///p.png", blob=encoded(png()))
    text = wire.TextResourceContents(uri="file:///t", text="Hello")
    about = {"description": "Last week", "mime_type": "image/png", "size": 90}

    result = await read(
        link("file:///p", **about), link("file:///t"), reader=resources(p=[blob], t=[text])
    )

    assert result.output.splitlines() == [
        "[resource: a.csv, file:///p, image/png, 90 bytes] Last week",
        f"[image: p.png, image/png, {len(png())} bytes]",
        "[resource: a.csv, file:///t]",
        "[resource: file:///t]",
        "Hello",
    ]
    assert [a.data for a in result.attachments] == [png()]


async def test_large_many_and_missing_resources_stay_links():
    text = [wire.TextResourceContents(uri="file:///t", text="Hello")]
    huge = [wire.TextResourceContents(uri="file:///h", text="x" * 1_000_001)]
    reader = resources(t=text, h=huge)

    large = await read(link("file:///t", size=2_000_000), reader=reader)
    found_large = await read(link("file:///h"), reader=reader)
    many = await read(*[link("file:///t")] * 4, reader=reader)
    missing = await read(link("file:///none"), reader=reader)

    assert "Hello" not in large.output + many.output
    assert found_large.output == "[resource: a.csv, file:///h]"
    assert missing.output == "[resource: a.csv, file:///none]"


async def test_a_resource_that_takes_too_long_stays_a_link(monkeypatch):
    monkeypatch.setattr(results, "READ_SECONDS", 0.01)

    result = await read(link(), reader=lambda uri: asyncio.sleep(60))

    assert result.output == "[resource: a.csv, file:///a.csv]"
