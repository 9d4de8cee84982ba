"""Images that models and browsers can take, and their thumbnails."""

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from shutil import copyfileobj
from typing import Any

from django.core.files.base import File
from django.core.files.storage import storages
from django.utils.translation import gettext as _

from agents.engine.tool import IMAGE_TYPES
from agents.models import StoredFile
from agents.tools import sandbox

from .errors import FileRefused, StorageUnavailable
from .store import StagedFile, thumbnail_path

SECONDS = 30
# By path, because only the child may import Pillow.
IMAGE_DECODER = sandbox.Worker(
    name="image decoder",
    program=str(Path(__file__).with_name("image_worker.py")),
    memory_bytes=1_500 * 2**20,
    file_bytes=200_000_000,
    open_files=32,
)
CPU_SECONDS = 25
# Each child may need a gigabyte. One is always left for somebody else.
SLOTS = sandbox.FairSlots(3, per_owner=2)

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ScaledImage:
    """A staged image that models can take, with its thumbnail beside it."""

    staged: StagedFile
    width: int
    height: int
    thumbnail: Path


@contextmanager
def scale(staged: StagedFile, name: str, *, owner: int | None) -> Iterator[ScaledImage]:
    """Scale a staged image down and remove its metadata; raise FileRefused.

    `owner` is the user it is done for: users take turns.
    """
    with tempfile.TemporaryDirectory(dir=staged.path.parent, prefix="image-") as folder:
        target = Path(folder, "image")
        thumbnail = Path(folder, "thumbnail")
        reply = _run(staged.path, target, thumbnail, owner)
        if "problem" in reply:
            raise FileRefused(_sentence(reply["problem"], name))
        with target.open("rb") as file:
            digest = sha256(file.read()).hexdigest()
        scaled = StagedFile(target, digest, target.stat().st_size, reply["type"])
        yield ScaledImage(scaled, reply["width"], reply["height"], thumbnail)


def save_thumbnail(file: StoredFile, thumbnail: Path) -> None:
    """Save the thumbnail of a stored image, if it isn't there yet."""
    storage = storages["files"]
    path = thumbnail_path(file)
    if storage.exists(path):
        return
    with thumbnail.open("rb") as content:
        saved = storage.save(path, File(content))
    if saved != path:
        storage.delete(saved)


def has_thumbnail(file: StoredFile, *, owner: int | None) -> bool:
    """Whether a thumbnail is there, or could be made now for this user."""
    if file.mime_type not in IMAGE_TYPES:
        return False
    try:
        if storages["files"].exists(thumbnail_path(file)):
            return True
        with tempfile.TemporaryDirectory(prefix="thumbnail-") as folder:
            source = Path(folder, "source")
            thumbnail = Path(folder, "thumbnail")
            with file.open() as content, source.open("wb") as copy:
                copyfileobj(content, copy)
            if "problem" in _run(source, None, thumbnail, owner):
                return False
            save_thumbnail(file, thumbnail)
        return True
    except StorageUnavailable:
        return False  # the response with the image itself says so


def _run(
    source: Path, target: Path | None, thumbnail: Path, owner: int | None
) -> dict[str, Any]:
    request = {
        "source": str(source),
        "target": str(target or ""),
        "thumbnail": str(thumbnail),
    }
    grant = sandbox.Grant(
        seconds=SECONDS,
        cpu_seconds=CPU_SECONDS,
        readable=[str(source)],
        writable=[str(thumbnail.parent)],
    )
    try:
        with SLOTS.slot(owner, SECONDS):
            return sandbox.run(IMAGE_DECODER, request, grant).json()
    except sandbox.NoFreeSlot:
        return {"problem": "busy"}
    except TimeoutError:
        return {"problem": "late"}
    except sandbox.WorkerFailed as error:  # killed by a limit
        logger.info("The image decoder %s", error)
        return {"problem": "damaged"}


def _sentence(problem: str, name: str) -> str:
    sentences = {
        "pixels": _("%(name)s has more than 100 megapixels. Make it smaller and try again."),
        "memory": _("%(name)s needs too much memory. Make it smaller and try again."),
        "format": _("%(name)s is a HEIC image. Save it as JPEG or PNG and try again."),
        "busy": _("%(name)s has to wait for other images. Try again in a moment."),
        "late": _("%(name)s took too long to read. Make it smaller and try again."),
    }
    damaged = _("%(name)s can't be read. It may be damaged.")
    return sentences.get(problem, damaged) % {"name": name}
