"""One compressed file for all stylesheets of a page, one for its scripts, one for its modules.

The tag `bundled` of `base.html` replaces their elements. With ASHIATO_DEBUG, pages load each
file by itself. The URL of a bundle names its files, so every process can serve what another
one's page refers to; it is signed, so nobody else can have bundles built.
See docs/decisions/static-bundles.md.
"""

import gzip
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from posixpath import dirname, join, relpath
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.staticfiles import finders
from django.http import QueryDict
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.safestring import SafeString, mark_safe

from .script_modules import join_modules

CSS_IMPORT = re.compile(r"^@import [^;]+;\n", re.MULTILINE)
# Relative ones, which depend on the folder of their file.
CSS_URL = re.compile(r"""(?<=\burl\()(["']?)(?![a-z]+:|[/#])([^"')]+)""")
CSS = "text/css; charset=utf-8"
JAVASCRIPT = "text/javascript; charset=utf-8"
# Files that are loaded by themselves, but compressed.
COMPRESSED_TYPES = {".css": CSS, ".js": JAVASCRIPT, ".mjs": JAVASCRIPT}


def read_bytes(name: str) -> bytes:
    """Return the content of a static file."""
    path = finders.find(name)
    if not isinstance(path, str):
        raise FileNotFoundError(name)
    return Path(path).read_bytes()


def read(name: str) -> str:
    return read_bytes(name).decode()


def join_styles(names: Sequence[str]) -> str:
    """Return several stylesheets as one in the folder `css`, with their imports first."""
    joined = "".join(f"{_move_urls(name, read(name))}\n" for name in names)
    # Browsers ignore an import after the first rule.
    return "".join(CSS_IMPORT.findall(joined)) + CSS_IMPORT.sub("", joined)


def _move_urls(name: str, style: str) -> str:
    """Change the URLs of a stylesheet as if it were in the folder `css`."""

    def move(match: re.Match[str]) -> str:
        return match[1] + relpath(join(dirname(name), match[2]), "css")

    return CSS_URL.sub(move, style)


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleKind:
    name: str
    before: str  # what precedes the URL in an element, and what follows it
    after: str
    content_type: str
    join: Callable[[Sequence[str]], str]


@dataclass(frozen=True, slots=True)
class Bundle:
    kind: BundleKind
    files: tuple[str, ...]


KINDS = (
    BundleKind(
        name="css/bundle.css",
        before='<link rel="stylesheet" href="',
        after='">',
        content_type=CSS,
        join=join_styles,
    ),
    BundleKind(
        name="js/scripts.js",
        before='<script src="',
        after='" defer></script>',
        content_type=JAVASCRIPT,
        join=lambda names: "".join(f"{read(name)}\n;\n" for name in names),
    ),
    BundleKind(
        name="js/modules.js",
        before='<script type="module" src="',
        after='"></script>',
        content_type=JAVASCRIPT,
        join=lambda names: join_modules(names, read),
    ),
)


def bundle_elements(html: str) -> SafeString:
    """Replace the stylesheets and deferred scripts of a page's head by bundles."""
    bundles = []
    for kind in () if settings.DEBUG else KINDS:
        before = f"{kind.before}{settings.STATIC_URL}"
        element = re.compile(rf'{re.escape(before)}([^"?]+){re.escape(kind.after)}\s*')
        files = list(dict.fromkeys(element.findall(html)))
        if len(files) > 0:
            html = element.sub("", html)
            query = urlencode({"files": ",".join(files), "key": _sign(files)}, safe="/,")
            bundles.append(f"{before}{kind.name}?{query.replace('&', '&amp;')}{kind.after}\n  ")
    return mark_safe("".join([*bundles, html]))


def find_bundle(name: str, query: QueryDict) -> Bundle | None:
    """Return the bundle of a URL, or None if it isn't one of ours."""
    files = query.get("files", "").split(",")
    kind = next((kind for kind in KINDS if kind.name == name), None)
    if kind is None or not constant_time_compare(query.get("key", ""), _sign(files)):
        return None
    return Bundle(kind, tuple(files))


@lru_cache(maxsize=256)
def compress_bundle(bundle: Bundle) -> bytes:
    return gzip.compress(bundle.kind.join(bundle.files).encode(), mtime=0)


@lru_cache(maxsize=256)
def compress_file(name: str) -> bytes:
    return gzip.compress(read_bytes(name), mtime=0)


def _sign(files: Sequence[str]) -> str:
    return salted_hmac("bundle", ",".join(files)).hexdigest()[:16]
