"""Logos: images are scaled and saved as WebP; an SVG is checked and saved as it is."""

import re
import sys
from dataclasses import dataclass
from functools import partial
from xml.parsers import expat

from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.utils.translation import gettext as _

from agents.engine.tool import IMAGE_TYPES
from agents.knowledge import files
from agents.knowledge.files import images, store
from agents.knowledge.files.errors import FileRefused
from agents.models import InstallationSetting

MAX_BYTES = 1_000_000
SVG = "http://www.w3.org/2000/svg"
# What can run or load something. In an <img>, browsers do neither; this is the second lock.
REFUSED_ELEMENTS = {"script", "foreignobject", "iframe", "embed", "object", "handler"}
OWN_TARGET = re.compile(r"\s*(#|data:image/(png|jpeg|webp);)", re.IGNORECASE)
OUTSIDE_URL = re.compile(r"@import|image-set\(|url\(\s*[\"']?(?!\s*[#\"'])", re.IGNORECASE)
CSS_ESCAPE = re.compile(r"\\(?:([0-9a-f]{1,6})\s?|(.))", re.IGNORECASE | re.DOTALL)
SCRIPT_URL = re.compile(r"(javascript|vbscript):", re.IGNORECASE)


class _UnsafeSvg(Exception):
    """Raised inside the parser at the first thing that a logo can't have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Logo:
    """A logo as it is saved."""

    content: bytes
    ending: str


def read(upload: "UploadedFile[bytes]", owner: int | None) -> Logo:
    """Return an uploaded file as a logo; raise FileRefused."""
    name = str(upload.name)
    with store.stage(upload, name=name, max_bytes=MAX_BYTES) as staged:
        if staged.mime_type not in IMAGE_TYPES:
            content = staged.path.read_bytes()
            check_svg(content, name)
            return Logo(content=content, ending="svg")
        # The thumbnail, which is small and without metadata, is all that pages need.
        with images.scale(staged, name, owner=owner) as scaled:
            return Logo(content=scaled.thumbnail.read_bytes(), ending="webp")


@transaction.atomic
def save(key: str, logo: Logo) -> str:
    """Save this logo in place of the one before, and return its name; raise FileRefused."""
    file = files.save(logo.content, name=key, owner=None)
    name = f"{file.digest}.{logo.ending}"
    rows = InstallationSetting.objects.filter(key=key).exclude(file=file)
    replaced = list(rows.values_list("file", flat=True))
    InstallationSetting.objects.update_or_create({"value": name, "file": file}, key=key)
    transaction.on_commit(partial(files.release, replaced), robust=True)
    return name


def delete(key: str) -> None:
    """Delete this logo; the file goes with its last row."""
    for row in InstallationSetting.objects.filter(key=key):
        row.delete()


def check_svg(content: bytes, name: str) -> None:
    """Raise FileRefused unless it is an SVG without scripts and links to elsewhere."""
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartDoctypeDeclHandler = _refuse
    parser.ProcessingInstructionHandler = _refuse
    is_root = True
    # The text of each open element: the parser resolves character references, and splits there.
    texts: list[list[str]] = [[]]

    def check_element(element: str, attributes: dict[str, str]) -> None:
        nonlocal is_root
        namespace, _space, tag = element.rpartition(" ")
        if is_root and (namespace, tag) != (SVG, "svg"):
            raise _UnsafeSvg
        is_root = False
        if tag.lower() in REFUSED_ELEMENTS:
            raise _UnsafeSvg
        for attribute, value in attributes.items():
            _check_attribute(attribute.rpartition(" ")[2].lower(), value)
        texts.append([])

    parser.StartElementHandler = check_element
    parser.CharacterDataHandler = lambda text: texts[-1].append(text)
    parser.EndElementHandler = lambda _element: _check_text("".join(texts.pop()))
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        sentence = _("%(name)s isn't an image. Upload a PNG, JPEG, WebP or SVG file.")
        raise FileRefused(sentence % {"name": name}) from error
    except _UnsafeSvg as error:
        sentence = _(
            "%(name)s has scripts, a document type or links to other files. "
            "Export it as a plain SVG, or upload a PNG."
        )
        raise FileRefused(sentence % {"name": name}) from error


def _check_attribute(name: str, value: str) -> None:
    is_outside = name == "href" and not OWN_TARGET.match(value)
    # An animation can change a link, too.
    is_changed = name == "attributename" and value.strip().lower().endswith("href")
    is_script = SCRIPT_URL.search("".join(value.split()))
    if name.startswith("on") or is_outside or is_changed or is_script:
        raise _UnsafeSvg
    _check_text(value)


def _check_text(text: str) -> None:
    if OUTSIDE_URL.search(text) or OUTSIDE_URL.search(CSS_ESCAPE.sub(_unescape, text)):
        raise _UnsafeSvg


def _unescape(escape: re.Match[str]) -> str:
    code = int(escape[1] or "0", 16)
    return chr(min(code, sys.maxunicode)) if escape[1] else escape[2]


def _refuse(*_declaration: object) -> None:
    raise _UnsafeSvg
