"""Counts tokens locally.

Loading a tokenizer takes up to two seconds, so a server never does it on its event loop: until
a thread has loaded it, tokens are estimated there.

LiteLLM ships the tokenizer files that tiktoken would otherwise download. Other vendors'
tokenizers differ slightly and aren't public; this is close enough for planning.
"""

import asyncio
import hashlib
import logging
import os
import re
import threading
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

import tiktoken

logger = logging.getLogger(__name__)

DEFAULT_ENCODING = "o200k_base"
LEGACY_ENCODING = "cl100k_base"
ENCODING_URL = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
BUNDLED_PATH = "litellm_core_utils/tokenizers"
LEGACY_MODELS = re.compile(r"(^|/)(gpt-4(-|$)|gpt-3\.5|text-embedding)")
MAX_CACHED_CHARS = 20_000
WIDE_CHARS = re.compile(r"[\u1100-\uffff\U00010000-\U0010ffff]")

_loads_on_loop = True
_loaded: set[str] = set()
_loading: set[str] = set()


def keep_loading_off_loop() -> None:
    """Load tokenizers in threads from now on, because others wait for the event loop."""
    global _loads_on_loop
    _loads_on_loop = False


def count(text: str, model: str = "") -> int:
    """Return the tokens of a text; special tokens are counted as text."""
    name = LEGACY_ENCODING if LEGACY_MODELS.search(model) else DEFAULT_ENCODING
    if name not in _loaded and not _loads_on_loop and _is_on_loop():
        if name not in _loading:
            _loading.add(name)
            threading.Thread(target=_encoding, args=[name], daemon=True).start()
        return estimate(text)
    return _count_cached(text, name) if len(text) <= MAX_CACHED_CHARS else _count(text, name)


def _is_on_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@lru_cache(maxsize=128)
def _count_cached(text: str, name: str) -> int:
    """Count with a cache, because each run starts with the same instructions and tools."""
    return _count(text, name)


def _count(text: str, name: str) -> int:
    encoding = _encoding(name)
    if encoding is None:
        return estimate(text)
    return len(encoding.encode_ordinary(text))


def estimate(text: str) -> int:
    """Estimate high: one per wide character, and one per three others."""
    wide = len(WIDE_CHARS.findall(text))
    return wide + -(-(len(text) - wide) // 3)


@cache
def _encoding(name: str) -> tiktoken.Encoding | None:
    spec = find_spec("litellm")
    locations = spec.submodule_search_locations if spec else None
    folder = Path(locations[0]) / BUNDLED_PATH if locations else None
    # tiktoken's cache has this name for a file.
    url = ENCODING_URL.format(name).encode()
    file_name = hashlib.sha1(url, usedforsecurity=False).hexdigest()
    if folder is None or not (folder / file_name).is_file():
        logger.warning("The tokenizer %s is not installed; tokens are estimated.", name)
        _loaded.add(name)
        return None
    # Set permanently: LiteLLM sets the same folder when imported, and restoring it at that
    # moment would make tiktoken download.
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    encoding = tiktoken.get_encoding(name)
    _loaded.add(name)
    return encoding
