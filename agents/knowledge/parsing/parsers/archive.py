"""Reads ZIP containers and the XML in them, within limits."""

from io import BytesIO
from posixpath import dirname, join, normpath
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat
from zipfile import BadZipFile, ZipFile
from zlib import error as ZlibError

from agents.engine.sentences import Sentence as _

from .values import PROTECTED, UnreadableDocument, WorkLimit

MAX_ENTRIES = 10_000
MAX_BYTES = 200_000_000  # unpacked, in total
MAX_DEPTH = 200
PIECE = 1_000_000
ELEMENT_STEPS = 8

DAMAGED = _("This file is damaged or incomplete.")
TOO_LARGE = _("Unpacked, this file is larger than %(size)s MB.", size=MAX_BYTES // 1_000_000)
FORBIDDEN_XML = _("This file contains a document type declaration, which isn't allowed.")
RELATIONSHIP = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"


class Archive:
    """An archive whose files are read into memory, never to disk, counting what is unpacked."""

    def __init__(self, data: bytes, work: WorkLimit) -> None:
        self._work = work
        try:
            self._zip = ZipFile(BytesIO(data))
        except (BadZipFile, OSError, ValueError) as error:
            raise UnreadableDocument(DAMAGED) from error
        self._left = MAX_BYTES
        entries = self._zip.infolist()
        if len(entries) > MAX_ENTRIES or sum(entry.file_size for entry in entries) > MAX_BYTES:
            raise UnreadableDocument(TOO_LARGE)
        if any(entry.flag_bits & 1 for entry in entries):
            raise UnreadableDocument(PROTECTED)
        self.names = {entry.filename for entry in entries}

    def read(self, name: str) -> bytes:
        """Return a file's bytes; the sizes that its header claims aren't trusted."""
        pieces = []
        try:
            with self._zip.open(name) as file:
                while piece := file.read(PIECE):
                    self._left -= len(piece)
                    if self._left < 0:
                        raise UnreadableDocument(TOO_LARGE)
                    pieces.append(piece)
        except (BadZipFile, ZlibError, EOFError, OSError, KeyError, RuntimeError) as error:
            raise UnreadableDocument(DAMAGED) from error
        return b"".join(pieces)

    def xml(self, name: str) -> Element:
        return parse_xml(self.read(name), self._work)

    def relationships(self, name: str) -> dict[str, tuple[str, str]]:
        """Return a part's relationships by id: the type's last word and the target's name."""
        folder = dirname(name)
        rels = join(folder, "_rels", f"{name[len(folder) :].lstrip('/')}.rels")
        if rels not in self.names:
            return {}
        targets: dict[str, tuple[str, str]] = {}
        for element in self.xml(rels).iter(RELATIONSHIP):
            if element.get("TargetMode") != "External":
                target = element.get("Target", "")
                is_absolute = target.startswith("/")
                path = target.lstrip("/") if is_absolute else normpath(join(folder, target))
                kind = element.get("Type", "").rpartition("/")[2]
                targets[element.get("Id", "")] = (kind, path)
        return targets


def parse_xml(data: bytes, work: WorkLimit) -> Element:
    """Parse XML without document types, so without entities of any kind."""
    builder = TreeBuilder()
    depth = 0
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise UnreadableDocument(DAMAGED)
        work.spend(ELEMENT_STEPS + len(attributes))
        builder.start(_qualify(tag), {_qualify(k): v for k, v in attributes.items()})

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(_qualify(tag))

    def refuse(*declaration: object) -> None:
        raise UnreadableDocument(FORBIDDEN_XML)

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(data, True)
        return builder.close()
    except (expat.ExpatError, AssertionError, LookupError, ValueError) as error:
        if isinstance(error, UnreadableDocument):
            raise
        raise UnreadableDocument(DAMAGED) from error


def _qualify(name: str) -> str:
    return "{" + name if "}" in name else name
