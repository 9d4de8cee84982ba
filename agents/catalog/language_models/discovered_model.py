"""The model that this installation has found in its environment."""

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

from django.conf import settings

from agents.llm.discovery import discovery

_lock = threading.Lock()


def discovered_model() -> discovery.ModelChoice:
    """Return this installation's model, discovered once."""
    with _lock:
        return _discover_default()


@lru_cache(maxsize=1)
def _discover_default() -> discovery.ModelChoice:
    """Discover in a thread, because the caller may be in an event loop."""
    environment = settings.ENVIRONMENT
    key = environment.model_key
    choice = discovery.choose(
        environment.model or None,
        environment.model_url or None,
        key.get_secret_value() if key else None,
        os.environ,
        probe=environment.model_discovery,
        own_port=environment.port,
    )
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, choice).result()
