"""Preloads what is slow to load, in a thread.

Certificates, tables and libraries are loaded on first use. Without this the first
user would wait for them, and so would everyone else, because the event loop would load them.
"""

import gc
import logging
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from threading import Thread

from django.db import connections

from agents.catalog.language_models import model_clients, model_setups
from agents.llm import litellm_model, model_info, parameters
from agents.llm.wire import http
from agents.models import Agent, McpServer
from agents.tools import egress

from ..presentation import markdown

logger = logging.getLogger(__name__)


def start() -> Thread:
    return _start_thread(run_all)


def _start_thread(work: Callable[[], None]) -> Thread:
    """Start a daemon thread, which never delays shutdown."""
    thread = Thread(target=work, name="warmup", daemon=True)
    thread.start()
    return thread


def run_all() -> None:
    """Run all steps; what fails here fails again where it is needed."""
    began = time.monotonic()
    for step in (*STEPS, *_optional_steps()):
        try:
            step()
        except Exception:
            logger.warning("A module couldn't be preloaded.", exc_info=True)
    # Loaded objects stay, so the event loop's garbage collector can skip them.
    gc.freeze()
    logger.debug("Warmed up in %.1f s.", time.monotonic() - began)


STEPS: tuple[Callable[[], object], ...] = (
    http.warm_up,
    lambda: model_info.context_window("warm"),
    markdown.warm,
    egress.warm_up,
)


def _optional_steps() -> Iterator[Callable[[], object]]:
    """Yield steps that only some installations need."""
    try:
        agents = Agent.objects.filter(enabled=True)
        setups = [
            s
            for agent in agents
            for s in model_setups.model_chain(agent, model_setups.model_name(agent))
        ]
        litellm_setups = [
            s for s in setups if getattr(model_clients.build_llm(s), "route", "") == "litellm"
        ]
        names = [setup.row.model if setup.row else setup.name for setup in litellm_setups]
        has_servers = McpServer.objects.filter(enabled=True).exists()
    finally:
        connections.close_all()  # this thread's would stay open
    if has_servers:
        yield lambda: import_module("agents.tools.mcp.connection.client")
    for prefix in sorted({parameters.provider_prefix(name) for name in names}):
        yield litellm_model.warm_up_provider(prefix).result
