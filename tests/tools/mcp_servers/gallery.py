"""A server made with FastMCP whose tools return images, sounds, files and links."""

import base64
import struct
import zlib

import mcp_types as wire
from fastmcp import FastMCP
from fastmcp.tools.base import ToolResult
from fastmcp.utilities.types import Audio, File, Image

gallery = FastMCP("gallery")
READS = {"readOnlyHint": True}
WIDTH, HEIGHT = 640, 360
BARS = (90, 150, 120, 230, 310)
CSV = "month,sales\nOctober,310\n"


def chunk(name: bytes, data: bytes) -> bytes:
    return (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    )


def draw() -> bytes:
    """Draw a bar chart as a PNG."""
    rows = bytearray()
    for y in range(HEIGHT):
        rows.append(0)
        for x in range(WIDTH):
            bar, inside = divmod(x, WIDTH // len(BARS))
            is_bar = 24 < inside < 104 and HEIGHT - y < BARS[min(bar, len(BARS) - 1)]
            rows += b"\x2f\x6f\xd6" if is_bar else b"\xf6\xf7\xf9"
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(rows)))
    return b"\x89PNG\r\n\x1a\n" + body + chunk(b"IEND", b"")


def tone(seconds: float = 0.5, rate: int = 8_000) -> bytes:
    data = bytes(128 + (60 if at // 9 % 2 else -60) for at in range(int(seconds * rate)))
    sound = struct.pack("<HHIIHH", 1, 1, rate, rate, 1, 8)
    body = b"WAVEfmt " + struct.pack("<I", len(sound)) + sound
    body += b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


@gallery.resource("sales://october.csv", mime_type="text/csv")
def october() -> str:
    return CSV


@gallery.tool(annotations=READS)
def chart() -> Image:
    """Draws the sales of the last months."""
    return Image(data=draw(), format="png")


@gallery.tool(annotations=READS)
def everything() -> ToolResult:
    """Returns an image, a sound, a file, a link and something broken."""
    link = wire.ResourceLink(
        type="resource_link",
        name="october.csv",
        uri="sales://october.csv",
        description="Sales in October",
    )
    broken = wire.ImageContent(type="image", data="###", mime_type="image/png")
    svg = base64.b64encode(b"<svg onload='alert(1)'/>").decode()
    drawing = wire.ImageContent(type="image", data=svg, mime_type="image/svg+xml")
    return ToolResult(
        content=[
            wire.TextContent(type="text", text="Sales, spoken and drawn."),
            Image(data=draw(), format="png").to_image_content(),
            Audio(data=tone(), format="wav").to_audio_content(),
            File(data=b"%PDF-1.7", format="pdf", name="report").to_resource_content(),
            drawing,
            link,
            broken,
        ]
    )


if __name__ == "__main__":
    gallery.run(show_banner=False)
