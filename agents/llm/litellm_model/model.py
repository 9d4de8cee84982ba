"""A client for any provider that LiteLLM supports."""

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from importlib import import_module
from typing import Any

from agents.engine.turn import Chunk
from agents.llm import parameters as model_parameters

from .. import prompt_caching
from ..direct import openai_request
from ..providers import find_provider
from ..routing import account_id
from ..usage_limits import UsageLimits
from ..wire.provider_errors import explain
from .chunks import add_cost, convert_chunks
from .loading import PROVIDER_MODULES, import_modules, warm_up
from .wire import read_wire


class LiteLLMModel:
    """A LiteLLM client.

    A key is only sent to its own address: `base_url`, or the provider's.
    """

    route = "litellm"

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        connect_timeout: float = 10.0,
        timeout: float = 600.0,
        secrets: Mapping[str, str] | None = None,
        caches_prompts: bool = True,
    ) -> None:
        """`secrets` are parameters that must not appear in errors, such as AWS keys."""
        self.caches_prompts = caches_prompts
        self.base_url = base_url
        self.account = account_id(base_url, api_key, secrets)
        self.parameters = dict(parameters or {})
        self.connect_timeout = connect_timeout
        self.timeout = timeout
        self._api_key = api_key
        self._secrets = dict(secrets or {})

    async def stream(
        self,
        *,
        model: str,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None = None,
        **parameters: Any,
    ) -> AsyncGenerator[Chunk, None]:
        request = self._request(model, messages, tools, parameters)
        limits = UsageLimits(model, messages, tools, {**self.parameters, **parameters})
        litellm = await asyncio.wrap_future(warm_up())
        try:
            if modules := PROVIDER_MODULES.get(model_parameters.provider_prefix(model)):
                await asyncio.wrap_future(import_modules(modules))
            async with aclosing(await litellm.acompletion(**request)) as reply_stream:
                wire = reply_stream.completion_stream
                is_wire = isinstance(wire, import_module("openai").AsyncStream)
                is_text = "text-completion" in str(reply_stream.custom_llm_provider)
                if is_wire and not is_text:
                    chunks = read_wire(wire.response)
                else:
                    chunks = convert_chunks(reply_stream)
                async with aclosing(chunks):
                    async for chunk in chunks:
                        yield add_cost(chunk, limits, litellm)
        except Exception as error:
            # Not `from error`: a provider's message may contain the key, and logs print causes.
            secrets = (self._api_key, *self._secrets.values())
            raise explain(error, model=model, secrets=secrets) from None

    def _request(
        self,
        model: str,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None,
        parameters: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Build the request; raise SettingNotAllowed for a forbidden parameter."""
        settings = model_parameters.ModelSettings(
            model=model,
            base_url=self.base_url,
            api_key=self._api_key,
            options=self.parameters,
            secrets=self._secrets,
        )
        model_parameters.check(settings, parameters)
        httpx = import_module("httpx")
        if provider := find_provider(model_parameters.full_name(model)):
            quirks = provider.quirks_for(model.partition("/")[2])
            messages = openai_request.adapt_order(messages, quirks)
        if self.caches_prompts:
            messages, tools = prompt_caching.mark(model, messages, tools)
        return {
            **self.parameters,
            **parameters,
            **self._secrets,
            **model_parameters.blank_credentials(settings),
            **({"tools": tools} if tools else {}),
            "model": model_parameters.full_name(model),
            "messages": messages,
            "api_key": model_parameters.resolve_key(settings, os.environ),
            "base_url": model_parameters.resolve_address(settings, os.environ),
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_retries": 0,
            "num_retries": 0,
            "timeout": httpx.Timeout(self.timeout, connect=self.connect_timeout),
        }
