"""Detects text that is written to an AI model instead of a reader, in English and Japanese.

It is a warning, not a filter: the text stays as it is, and calls that could do harm need a
person's approval afterwards. What it misses is why an agent can require that in any case.
"""

import base64
import re
import tomllib
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from agents.engine.guardrails.compilation import compile_re2
from agents.engine.guardrails.invisible import TAGS, strip_invisible

MAX_CHARS = 200_000
EXCERPT_CHARS = 160
MAX_ENCODED = 20
_WORD = re.compile(r"\{([a-z_]+)\}")
_TAG_CHARACTERS = re.compile(f"[{TAGS}]{{4,}}")
_BASE64 = re.compile(r"(?<![\w+/])[A-Za-z0-9+/]{40,2000}={0,2}(?![\w+/])")


def find_instructions(text: str) -> str:
    """Return the beginning of what looks like instructions to a model, or an empty text."""
    text = text[:MAX_CHARS].encode(errors="replace").decode()
    for reading in _readings(text):
        if match := _pattern().search(reading):
            start = max(reading.rfind("\n", 0, match.start()) + 1, match.start() - 40)
            return " ".join(reading[start : start + EXCERPT_CHARS].split())
    return ""


@cache
def _pattern() -> Any:
    library = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
    synonyms: dict[str, str] = library["words"]
    patterns = [pattern for group in library["patterns"].values() for pattern in group]
    filled = [_WORD.sub(lambda name: synonyms[name[1]], pattern) for pattern in patterns]
    return compile_re2("(?im)" + "|".join(f"(?:{pattern})" for pattern in filled))


def _readings(text: str) -> Iterator[str]:
    """Return the text as a model may read it: plain, in tag characters, or encoded."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", strip_invisible(text))
    yield plain
    if not text.isascii():
        for hidden in _TAG_CHARACTERS.findall(text):
            yield "".join(chr(ord(c) - 0xE0000) for c in hidden if 0xE0020 <= ord(c) < 0xE007F)
    for _, encoded in zip(range(MAX_ENCODED), _BASE64.findall(plain), strict=False):
        try:
            yield base64.b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
        except ValueError:
            continue
