"""Decodes one image in its own confined process, killed when it is late.

It reads one JSON request from standard input, with the paths of the image, of an image that
models and browsers can take (turned as it was taken, without its metadata), and of a thumbnail;
an empty path leaves one out. The reply is one JSON object on standard output.
"""

import json
import sys
from typing import Any

from PIL import Image, ImageOps

MAX_SIDE = 2_000
# Providers limit an image to 5 MB in base64.
MAX_BYTES = 3_700_000
MAX_PIXELS = 100_000_000
MAX_PROFILE_BYTES = 100_000  # of colors; those of screens have a few kilobytes
THUMBNAIL_SIDE = 480
FORMATS: tuple[str, ...] = ("PNG", "JPEG", "WEBP", "GIF", "AVIF")
# Phones take these; the other side wants them as JPEG.
PHONE_FORMATS = ("HEIF", "AVIF")
QUALITIES = (90, 80, 65, 50)


def main(source: str, target: str, thumbnail: str) -> dict[str, Any]:
    Image.MAX_IMAGE_PIXELS = MAX_PIXELS
    formats = FORMATS
    with open(source, "rb") as file:
        if file.read(12)[4:8] == b"ftyp":  # loading the decoder takes a moment
            from pi_heif import register_heif_opener

            register_heif_opener(thumbnails=False)
            formats += ("HEIF",)
    with Image.open(source, formats=formats) as opened:
        if opened.width * opened.height > MAX_PIXELS:
            return {"problem": "pixels"}
        # A JPEG is decoded at a fraction of its size, if that is enough.
        if target == "":
            opened.draft("RGB", (THUMBNAIL_SIDE * 2, THUMBNAIL_SIDE * 2))
        source_format = opened.format or "PNG"
        image = ImageOps.exif_transpose(opened)
        image.load()
    if thumbnail:
        small = image.copy()
        small.thumbnail((THUMBNAIL_SIDE, THUMBNAIL_SIDE), Image.Resampling.LANCZOS)
        small.convert("RGBA").save(thumbnail, "WEBP", quality=75)
    return _save_image(image, source_format, target) if target else {"thumbnail": thumbnail}


def _save_image(image: Image.Image, source_format: str, target: str) -> dict[str, Any]:
    image.thumbnail((MAX_SIDE, MAX_SIDE), Image.Resampling.LANCZOS)
    if len(image.info.get("icc_profile") or b"") > MAX_PROFILE_BYTES:
        del image.info["icc_profile"]
    has_alpha = image.mode in {"RGBA", "LA", "PA"} or "transparency" in image.info
    target_format = {"JPEG": "JPEG", "WEBP": "WEBP"}.get(source_format, "PNG")
    if source_format in PHONE_FORMATS:
        target_format = "WEBP" if has_alpha else "JPEG"
    if target_format == "PNG":
        image.convert("RGBA" if has_alpha else "RGB").save(target, "PNG")
        if _size(target) > MAX_BYTES:
            target_format = "WEBP" if has_alpha else "JPEG"
    for quality in () if target_format == "PNG" else QUALITIES:
        image.convert("RGBA" if target_format == "WEBP" and has_alpha else "RGB").save(
            target, target_format, quality=quality
        )
        if _size(target) <= MAX_BYTES:
            break
    return {
        "width": image.width,
        "height": image.height,
        "type": f"image/{target_format.lower()}",
    }


def _size(path: str) -> int:
    with open(path, "rb") as file:
        return file.seek(0, 2)


if __name__ == "__main__":
    try:
        reply = main(**json.loads(sys.stdin.buffer.read()))
    except Image.DecompressionBombError:
        reply = {"problem": "pixels"}
    except ImportError:  # the decoder of HEIC isn't installed
        reply = {"problem": "format"}
    except MemoryError:
        reply = {"problem": "memory"}
    except Exception:  # a damaged image can raise anything
        reply = {"problem": "damaged"}
    sys.stdout.write(json.dumps(reply))
