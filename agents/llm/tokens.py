"""How many tokens a text is, without asking anyone.

LiteLLM ships the tokenizer files that tiktoken would otherwise download. Models of other
makers cut text a little differently; theirs are not public, and this is near enough to plan by.
"""

import hashlib
import logging
import os
import re
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

import tiktoken

logger = logging.getLogger(__name__)

DEFAULT_ENCODING, LEGACY_ENCODING = "o200k_base", "cl100k_base"
ENCODING_URL = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
BUNDLED_PATH = "litellm_core_utils/tokenizers"
LEGACY_MODELS = re.compile(r"(^|/)(gpt-4(-|$)|gpt-3\.5|text-embedding)")
MAX_CACHED_CHARS = 20_000
WIDE_CHARS = re.compile(r"[\u1100-\uffff\U00010000-\U0010ffff]")


def count(text: str, model: str = "") -> int:
    """The tokens of a text; what looks like a special token is counted as the text it is."""
    return _count_cached(text, model) if len(text) <= MAX_CACHED_CHARS else _count(text, model)


@lru_cache(maxsize=128)
def _count_cached(text: str, model: str) -> int:
    """Each run begins with the same instructions and the same tools."""
    return _count(text, model)


def _count(text: str, model: str) -> int:
    encoding = _encoding(LEGACY_ENCODING if LEGACY_MODELS.search(model) else DEFAULT_ENCODING)
    if encoding is None:
        return estimate(text)
    return len(encoding.encode_ordinary(text))


def estimate(text: str) -> int:
    """Rather too many than too few: one a wide character, one for every three of the others."""
    wide = len(WIDE_CHARS.findall(text))
    return wide + -(-(len(text) - wide) // 3)


@cache
def _encoding(name: str) -> tiktoken.Encoding | None:
    folder = _bundled_folder()
    if folder is None or not (folder / _cache_name(name)).is_file():
        logger.warning("The tokenizer %s is not installed; tokens are estimated.", name)
        return None
    # For good and not only for now: LiteLLM sets the same folder whenever it is imported, and
    # taking it back at that moment would send tiktoken to the network.
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    return tiktoken.get_encoding(name)


def _bundled_folder() -> Path | None:
    spec = find_spec("litellm")
    places = spec.submodule_search_locations if spec else None
    return Path(places[0]) / BUNDLED_PATH if places else None


def _cache_name(name: str) -> str:
    """The name under which tiktoken looks for a file before it would download it."""
    return hashlib.sha1(ENCODING_URL.format(name).encode(), usedforsecurity=False).hexdigest()
