"""Images that models and browsers can take, and their thumbnails."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from shutil import copyfileobj
from threading import BoundedSemaphore
from typing import Any

from django.core.files.base import File
from django.core.files.storage import storages
from django.utils.translation import gettext as _

from agents.engine.tool import IMAGE_TYPES
from agents.models import StoredFile

from .errors import FileRefused, StorageUnavailable
from .store import StagedFile, thumbnail_path

# By path, because only the child may import Pillow.
WORKER = Path(__file__).with_name("image_worker.py")
SECONDS = 30
# Each child may need a gigabyte.
_children = BoundedSemaphore(2)


@dataclass(frozen=True)
class ScaledImage:
    """A staged image that models can take, with its thumbnail beside it."""

    staged: StagedFile
    width: int
    height: int
    thumbnail: Path


@contextmanager
def scale(staged: StagedFile, name: str) -> Iterator[ScaledImage]:
    """Scale a staged image down and remove its metadata; raise FileRefused."""
    with tempfile.TemporaryDirectory(dir=staged.path.parent, prefix="image-") as folder:
        target, thumbnail = Path(folder, "image"), Path(folder, "thumbnail")
        reply = _run(staged.path, target, thumbnail)
        if "problem" in reply:
            raise FileRefused(_sentence(reply["problem"], name))
        with target.open("rb") as file:
            digest = sha256(file.read()).hexdigest()
        scaled = StagedFile(target, digest, target.stat().st_size, reply["type"])
        yield ScaledImage(scaled, reply["width"], reply["height"], thumbnail)


def save_thumbnail(file: StoredFile, thumbnail: Path) -> None:
    """Save the thumbnail of a stored image, if it isn't there yet."""
    storage, path = storages["files"], thumbnail_path(file)
    if storage.exists(path):
        return
    with thumbnail.open("rb") as content:
        saved = storage.save(path, File(content))
    if saved != path:
        storage.delete(saved)


def has_thumbnail(file: StoredFile) -> bool:
    """Whether a thumbnail is there, or could be made now."""
    if file.mime_type not in IMAGE_TYPES:
        return False
    try:
        return storages["files"].exists(thumbnail_path(file)) or _make_thumbnail(file)
    except StorageUnavailable:
        return False  # the response with the image itself says so


def _make_thumbnail(file: StoredFile) -> bool:
    with tempfile.TemporaryDirectory(prefix="thumbnail-") as folder:
        source, thumbnail = Path(folder, "source"), Path(folder, "thumbnail")
        with file.open() as content, source.open("wb") as copy:
            copyfileobj(content, copy)
        if "problem" in _run(source, None, thumbnail):
            return False
        save_thumbnail(file, thumbnail)
    return True


def _run(source: Path, target: Path | None, thumbnail: Path) -> dict[str, Any]:
    command = [
        sys.executable,
        "-I",
        str(WORKER),
        str(source),
        str(target or ""),
        str(thumbnail),
    ]
    if not _children.acquire(timeout=SECONDS):
        return {"problem": "late"}
    try:
        done = subprocess.run(command, env={}, capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return {"problem": "late"}
    finally:
        _children.release()
    try:
        reply: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return {"problem": "damaged"}  # killed by a limit
    return reply


def _sentence(problem: str, name: str) -> str:
    sentences = {
        "pixels": _("%(name)s has more than 100 megapixels. Make it smaller and try again."),
        "memory": _("%(name)s needs too much memory. Make it smaller and try again."),
        "format": _("%(name)s is a HEIC image. Save it as JPEG or PNG and try again."),
        "late": _("%(name)s took too long to read. Make it smaller and try again."),
    }
    damaged = _("%(name)s can't be read. It may be damaged.")
    return sentences.get(problem, damaged) % {"name": name}
