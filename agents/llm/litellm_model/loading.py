"""Imports LiteLLM in a thread, because that takes seconds."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache
from importlib import import_module
from typing import Any

from .patches import (
    disable_ollama_lookup,
    disable_redirects,
    disable_retries,
    fix_finish_reasons,
)

# Modules that LiteLLM would otherwise import on the event loop, during the first request.
LAZY_IMPORTS = (
    "openai.resources.chat",
    "httpcore",
    "anyio._backends._asyncio",
    "litellm.litellm_core_utils.default_encoding",
    "litellm.responses.mcp.litellm_proxy_mcp_handler",
    "litellm.proxy._types",
)
# Modules that some providers also need, by model prefix.
AWS_MODULES = ("boto3", "botocore.auth", "botocore.awsrequest", "botocore.eventstream")
PROVIDER_MODULES = {
    "bedrock": AWS_MODULES,
    "sagemaker": AWS_MODULES,
    "sagemaker_chat": AWS_MODULES,
}


@cache
def warm_up() -> "Future[Any]":
    """Start importing LiteLLM in a daemon thread."""
    return load_in_thread(_import_litellm)


@cache
def import_modules(modules: tuple[str, ...]) -> "Future[Any]":
    return load_in_thread(lambda: [import_module(name) for name in modules])


def load_in_thread(load: Callable[[], Any]) -> "Future[Any]":
    loading: Future[Any] = Future()
    # Marked as running, so that cancelling one waiting run doesn't cancel it for all.
    loading.set_running_or_notify_cancel()

    def complete() -> None:
        try:
            loading.set_result(load())
        except BaseException as error:
            loading.set_exception(error)

    threading.Thread(target=complete, name="litellm", daemon=True).start()
    return loading


def _import_litellm() -> Any:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # otherwise it fetches prices, blocking
    os.environ["LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS"] = "True"  # likewise, at the first reply
    os.environ["LITELLM_MODE"] = "PRODUCTION"  # otherwise it loads any .env it finds
    litellm: Any = import_module("litellm")
    litellm.disable_hf_tokenizer_download = True
    litellm.disable_aiohttp_transport = True
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.drop_params = True
    litellm.modify_params = True  # some providers require the tools that the history used
    litellm.callbacks = []
    for name in LAZY_IMPORTS:
        import_module(name)
    fix_finish_reasons()
    disable_ollama_lookup()
    disable_redirects()
    disable_retries()
    return litellm
