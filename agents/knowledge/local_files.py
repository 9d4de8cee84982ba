"""Ingests files of this machine: the next ones are parsed while one is indexed."""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from errno import ENOENT
from hashlib import file_digest
from pathlib import Path

from django.conf import settings

from agents.models import Collection, Document

from .documents import IngestResult, default_collection, index_document
from .ingestion.documents import find_files
from .parsing import ParsedDocument, UnreadableDocument, parse
from .retrieval.tokenizer import detect_language

PARSERS = 2
AHEAD = 6
MAX_SAMPLE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A file that couldn't be read, and why."""

    path: Path
    reason: str


def expand(paths: Iterable[Path]) -> list[Path]:
    """Return the files, and those in folders; a folder without any is rejected later."""
    return [
        file
        for path in paths
        for file in ((find_files(path) if path.is_dir() else []) or [path])
    ]


def ingest_files(
    paths: Iterable[Path], collection: Collection | None = None
) -> Iterator[IngestResult | Unreadable]:
    """Ingest files, again if they changed; yield what happened to each, in order."""
    collection = collection or default_collection()
    with ThreadPoolExecutor(PARSERS, thread_name_prefix="parsing") as pool:
        waiting: deque[tuple[Path, Document, str, Future[ParsedDocument]]] = deque()
        for path in paths:
            try:
                if path.is_dir():
                    raise OSError(ENOENT, "There are no files in it that can be read")
                with path.open("rb") as file:
                    digest = file_digest(file, "sha256").hexdigest()
            except OSError as error:
                yield Unreadable(
                    path=path, reason=f"Can't read {str(path)!r}: {error.strerror}."
                )
                continue
            source = source_of(path)
            document = collection.documents.filter(source=source).first()
            document = document or Document(collection=collection, source=source)
            if document.pk and document.digest == digest:
                yield IngestResult(document=document, outcome="unchanged")
                continue
            waiting.append((path, document, digest, pool.submit(parse, path, path.name)))
            if len(waiting) > AHEAD:
                yield _finish(*waiting.popleft())
        while waiting:
            yield _finish(*waiting.popleft())


def source_of(path: Path) -> str:
    """Return the path that names the document: relative if it is in the product's folder."""
    path = path.resolve()
    inside = path.is_relative_to(settings.BASE_DIR)
    return (path.relative_to(settings.BASE_DIR) if inside else path).as_posix()


def _finish(
    path: Path, document: Document, digest: str, parsing: "Future[ParsedDocument]"
) -> IngestResult | Unreadable:
    is_new = document.pk is None
    try:
        parsed = parsing.result()
        sample = "\n".join(page.text[:2_000] for page in parsed.parts[:MAX_SAMPLE])
        document.title = (parsed.title or path.stem)[:200]
        document.digest = digest
        document.pages = parsed.pages
        document.language = parsed.language or detect_language(sample)
        document.problem = "\n".join(parsed.notes)[:500]
        index_document(document, parsed.parts)
    except UnreadableDocument as error:
        return Unreadable(path=path, reason=f"{str(path)!r}: {error}")
    return IngestResult(document=document, outcome="added" if is_new else "updated")
