"""Loads what a provider needs, by a request that isn't sent."""

import asyncio
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from typing import Any

from .loading import PROVIDER_MODULES, import_modules, load_in_thread, warm_up
from .model import LiteLLMModel
from .rehearsal import is_rehearsal

UNREACHABLE_URL = "http://127.0.0.1:9"
AWS_DUMMY_OPTIONS: dict[str, Any] = {
    "parameters": {
        "aws_region_name": "us-east-1",
        "aws_bedrock_runtime_endpoint": UNREACHABLE_URL,
    },
    "secrets": {"aws_access_key_id": "rehearsal", "aws_secret_access_key": "rehearsal"},
}


@cache
def warm_up_provider(prefix: str) -> "Future[Any]":
    """Make a dry run of a provider, because LiteLLM imports much of itself on first use.

    No request leaves the process.
    """

    def dry_run() -> None:
        litellm = warm_up().result()
        if modules := PROVIDER_MODULES.get(prefix):
            import_modules(modules).result()
        is_rehearsal.set(True)  # only in this thread
        options = AWS_DUMMY_OPTIONS if prefix == "bedrock" else {"base_url": UNREACHABLE_URL}
        name = "anthropic.claude" if prefix == "bedrock" else "rehearsal"
        llm = LiteLLMModel(**options)
        hello = [{"role": "user", "content": "."}]
        with suppress(Exception):  # it is meant to fail, and each provider fails differently
            request = llm._request(f"{prefix}/{name}", hello, None, {})
            asyncio.run(litellm.acompletion(**request))

    return load_in_thread(dry_run)
