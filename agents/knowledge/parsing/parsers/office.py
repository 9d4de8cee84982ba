"""What the formats of Microsoft Office have in common."""

from xml.etree.ElementTree import Element

from agents.engine.sentences import Sentence as _

from . import markdown
from .archive import Archive

MACROS = _("It contains macros, which were ignored.")
DC_TITLE = "{http://purl.org/dc/elements/1.1/}title"


def local_name(element: Element) -> str:
    """Return a tag without its namespace, of which there are two for the same thing."""
    return element.tag.rpartition("}")[2]


def macro_notes(archive: Archive) -> list[str]:
    return [MACROS] if any("vbaProject" in name for name in archive.names) else []


def property_title(archive: Archive) -> str:
    """Return the title in the file's properties."""
    if "docProps/core.xml" not in archive.names:
        return ""
    return markdown.collapse(archive.xml("docProps/core.xml").findtext(f".//{DC_TITLE}") or "")
