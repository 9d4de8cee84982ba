"""HTTP tools: an OpenAI-style definition with an HTTP endpoint."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agents.engine import json_schema
from agents.engine.privacy import MASK
from agents.engine.sentences import Sentence, joined
from agents.engine.sentences import Sentence as _
from agents.engine.text import cut_text
from agents.engine.tool import Effect, ToolInput, ToolResult, uncertain_message

from ..egress import Egress, EgressFailed, EgressRefused, Response, ResponseTooLarge, fetch
from .binding import HttpBinding, to_json
from .definition import parse_function, parse_parameters, validate_headers, validate_method
from .endpoint import Endpoint, query_pairs
from .response_text import (
    MAX_OUTPUT_CHARS,
    decode,
    format_status,
    freshness,
    is_text,
    pretty_json,
    read_content_type,
    status_error,
)
from .secret_forms import secret_forms

MAX_INPUT_BYTES = 200_000


class HttpTool:
    """Sends its input to an endpoint, if the input matches the schema.

    Arguments named in braces go into the path; the others go into the query of a GET, or as a
    JSON object into the body of other methods. The `http` part of a definition can say more
    exactly where each argument goes (`binding`).
    """

    is_untrusted = True

    def __init__(
        self,
        definition: Mapping[str, Any],
        endpoint: str,
        *,
        method: str = "POST",
        headers: Mapping[str, str] | None = None,
        egress: Egress | None = None,
        effect: Effect | None = None,
        timeout: float = 20.0,
    ) -> None:
        function = parse_function(definition)
        self.name: str = function["name"]
        self.description: str = function.get("description") or ""
        self.parameters = parse_parameters(function)
        self.method = validate_method(method)
        self.effect: Effect = effect or ("read" if method == "GET" else "at_most_once")
        self.needs_approval = self.effect != "read"
        self.timeout = timeout + 2  # after our own limit, which has a clearer message
        self._endpoint = Endpoint.read(endpoint, self.parameters)
        self.reaches = f"{self.method} {self._endpoint.template}"
        self._binding = HttpBinding.read(function.get("http"), self.parameters)
        self._headers = validate_headers(headers or {})
        self._secret_query = self._binding.take_query_secrets(self._headers)
        self._policy = replace(egress or Egress(), timeout=timeout)
        closed_query = [*self._endpoint.query, *self._secret_query.items()]
        self._secrets = secret_forms(self._headers, closed_query, self._secret_query)

    async def execute(self, input: ToolInput, /) -> ToolResult:
        try:
            # In a thread, because validating large arguments takes a while.
            url, headers, content = await asyncio.to_thread(self._request, input)
        except ValueError as error:
            message = _("Invalid arguments for %(tool)s: %(why)s", tool=self.name, why=error)
            return ToolResult(error=self._mask_secrets(message), mendable=True)
        try:
            response = await fetch(
                self.method, url, policy=self._policy, headers=headers, content=content
            )
        except (EgressRefused, EgressFailed) as error:
            was_sent = isinstance(error, EgressFailed) and error.was_sent
            is_large = isinstance(error, ResponseTooLarge)
            sentence = str(error)
            if was_sent and self.effect == "at_most_once":
                sentence = uncertain_message(sentence)
            if is_large and self.effect == "read":
                sentence = _("%(sentence)s Request less data.", sentence=sentence)
            return ToolResult(error=self._mask_secrets(sentence), mendable=is_large)
        return await asyncio.to_thread(self._result, response)

    def _request(self, input: ToolInput) -> tuple[str, dict[str, str], bytes | None]:
        """Return the URL, headers and body; raise ValueError if the input can't be sent."""
        first = list(self.parameters.get("properties", {}))[:1]
        arguments = dict.fromkeys(first, input) if isinstance(input, str) else dict(input)
        if len(to_json(arguments)) > MAX_INPUT_BYTES:
            raise ValueError(
                _(
                    "The arguments are larger than %(limit)s bytes.",
                    limit=f"{MAX_INPUT_BYTES:,}",
                )
            )
        try:
            problems = json_schema.violations(self.parameters, arguments)
        except (json_schema.TooManyChecks, RecursionError) as error:
            raise ValueError(
                _("The arguments are too large or nested too deeply to check.")
            ) from error
        if problems:
            raise ValueError(Sentence("%(problems)s.", problems=joined("; ", problems)))
        path, arguments = self._endpoint.fill_path(arguments)
        if not self._binding.is_given:
            has_body = self.method != "GET" and (bool(arguments) or self.method != "DELETE")
            url = self._endpoint.build_url(path, query_pairs({} if has_body else arguments))
            body = to_json(arguments) if has_body else None
            return url, self._build_headers("application/json" if has_body else ""), body
        # The definition says where each argument goes.
        placement = self._binding.place(arguments)
        if secret_names := {name for name, _ in placement.query} & {*self._secret_query}:
            raise ValueError(_("%(name)s is set automatically.", name=repr(min(secret_names))))
        url = self._endpoint.build_url(path, [*placement.query, *self._secret_query.items()])
        headers = self._build_headers(placement.content_type)
        configured = {name.lower() for name in headers}
        extra_headers = {
            k: v for k, v in placement.headers.items() if k.lower() not in configured
        }
        return url, {**extra_headers, **headers}, placement.content

    def _build_headers(self, content_type: str) -> dict[str, str]:
        """Return the configured headers, with our defaults."""
        own_headers = {"Accept": "application/json, text/*"}
        if content_type:
            own_headers["Content-Type"] = content_type
        names = {name.lower() for name in self._headers}
        return {k: v for k, v in own_headers.items() if k.lower() not in names} | self._headers

    def _result(self, response: Response) -> ToolResult:
        host = self._endpoint.host
        content_type, charset = read_content_type(response)
        text = (
            self._mask_secrets(decode(response.content, charset))
            if is_text(content_type)
            else ""
        )
        if response.status >= 300:
            return status_error(host, response.status, text)
        if response.content and not is_text(content_type):
            message = _(
                "%(host)s returned %(type)s, which isn't text.", host=host, type=content_type
            )
            return ToolResult(error=message, mendable=True)
        if not text.strip():
            return ToolResult(
                _(
                    "Done. The response was empty (%(status)s).",
                    status=format_status(response.status),
                )
            )
        is_data = "json" in content_type
        visible = self._mask_secrets(pretty_json(text)) if is_data else text
        max_age, is_private = freshness(response.headers.get("cache-control", ""))
        return ToolResult(
            cut_text(visible, MAX_OUTPUT_CHARS),
            is_data=is_data,
            max_age=max_age,
            is_private=is_private,
        )

    def _mask_secrets(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text
