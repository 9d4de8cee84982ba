"""Logos: images are scaled and saved as WebP; an SVG is checked and saved as it is."""

from dataclasses import dataclass
from functools import partial

from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.utils.translation import gettext as _

from agents.engine.tool import IMAGE_TYPES
from agents.knowledge import files
from agents.knowledge.files import images, store, svg
from agents.knowledge.files.errors import FileRefused
from agents.models import InstallationSetting

MAX_BYTES = 1_000_000


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
    try:
        svg.check(content)
    except svg.NotSvg as error:
        sentence = _("%(name)s isn't an image. Upload a PNG, JPEG, WebP or SVG file.")
        raise FileRefused(sentence % {"name": name}) from error
    except svg.UnsafeSvg as error:
        sentence = _(
            "%(name)s has scripts, a document type or links to other files. "
            "Export it as a plain SVG, or upload a PNG."
        )
        raise FileRefused(sentence % {"name": name}) from error
