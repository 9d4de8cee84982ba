"""SVG files that are only pictures: nothing in them runs or loads something."""

import re
import sys
from xml.parsers import expat

SVG = "http://www.w3.org/2000/svg"
# What can run or load something. In an <img>, browsers do neither; this is the second lock.
REFUSED_ELEMENTS = {"script", "foreignobject", "iframe", "embed", "object", "handler"}
OWN_TARGET = re.compile(r"\s*(#|data:image/(png|jpeg|webp);)", re.IGNORECASE)
OUTSIDE_URL = re.compile(r"@import|image-set\(|url\(\s*[\"']?(?!\s*[#\"'])", re.IGNORECASE)
CSS_ESCAPE = re.compile(r"\\(?:([0-9a-f]{1,6})\s?|(.))", re.IGNORECASE | re.DOTALL)
SCRIPT_URL = re.compile(r"(javascript|vbscript):", re.IGNORECASE)


class NotSvg(Exception):
    """Raised for a file that isn't an SVG."""


class UnsafeSvg(Exception):
    """Raised at the first script, document type or link to elsewhere."""


def check(content: bytes) -> None:
    """Raise NotSvg, or UnsafeSvg for one that isn't only a picture."""
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
            raise UnsafeSvg
        is_root = False
        if tag.lower() in REFUSED_ELEMENTS:
            raise UnsafeSvg
        for attribute, value in attributes.items():
            _check_attribute(attribute.rpartition(" ")[2].lower(), value)
        texts.append([])

    parser.StartElementHandler = check_element
    parser.CharacterDataHandler = lambda text: texts[-1].append(text)
    parser.EndElementHandler = lambda _element: _check_text("".join(texts.pop()))
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise NotSvg from error


def _check_attribute(name: str, value: str) -> None:
    is_outside = name == "href" and not OWN_TARGET.match(value)
    # An animation can change a link, too.
    is_changed = name == "attributename" and value.strip().lower().endswith("href")
    is_script = SCRIPT_URL.search("".join(value.split()))
    if name.startswith("on") or is_outside or is_changed or is_script:
        raise UnsafeSvg
    _check_text(value)


def _check_text(text: str) -> None:
    if OUTSIDE_URL.search(text) or OUTSIDE_URL.search(CSS_ESCAPE.sub(_unescape, text)):
        raise UnsafeSvg


def _unescape(escape: re.Match[str]) -> str:
    code = int(escape[1] or "0", 16)
    return chr(min(code, sys.maxunicode)) if escape[1] else escape[2]


def _refuse(*_declaration: object) -> None:
    raise UnsafeSvg
