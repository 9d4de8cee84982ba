"""Translates provider errors into messages without secrets."""

import ast
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any

from agents.engine.errors import (
    AgentConnectionError,
    AgentError,
    ModelError,
    ModelTimeout,
    ProviderFailed,
    RateLimited,
)
from agents.engine.privacy import mask_secrets
from agents.engine.sentences import Sentence as _
from agents.engine.text import shorten

from .error_causes import (
    CHAT_TOO_LONG,
    CHECK_NAME,
    CHECK_PROXY_KEY,
    MODEL_NOT_FOUND,
    NEW_CHAT,
    ProviderResponse,
    ProviderSentence,
    find_cause,
    find_context_cause,
    wait_seconds,
)

LIMIT_CODES = re.compile(r"rate_limit|RESOURCE_EXHAUSTED|insufficient_quota")


class StreamGarbled(Exception):
    """Raised when the response isn't a stream of chunks."""


class StreamFailed(Exception):
    """Raised when the provider sends an error in the middle of a reply."""

    def __init__(self, error: Any) -> None:
        details = error if isinstance(error, Mapping) else {"message": str(error)}
        super().__init__(str(details.get("message") or details))
        self.body = details
        code = str(details.get("code") or details.get("status") or "")
        is_limit = bool(LIMIT_CODES.search(f"{code} {details.get('type')}"))
        is_status = code.isdecimal() and len(code) == 3
        self.status_code = int(code) if is_status else 429 if is_limit else 500


MAX_PARSED_CHARS = 100_000
MAX_MASKED_CHARS = 10_000
MAX_BODY_DEPTH = 12
# Parts of an error that repeat what a person wrote, which may look like any error.
REQUEST_FIELDS = frozenset({"input", "flagged_input", "messages"})
RETRY_ADVICE = _("Try again, or choose another model.")
RETRY_LATER_ADVICE = _("Try again later, or choose another model.")
CHECK_KEY_ADVICE = _("Check this model's API key.")

MISSING_KEY = re.compile(
    r"missing (credentials|\w+ api.?key)|api_key .*must be set|api key (not valid|expired)",
    re.I,
)
MISSING_PROVIDER = re.compile(r"LLM Provider NOT provided")
# In this order, because a timed-out connection may also have an SSLError among its causes.
UNREACHABLE_REASONS = {
    "gaierror": _("the host name couldn't be resolved"),
    "ConnectTimeout": _("the connection timed out"),
    "SSLError": _("the TLS connection failed"),
    "ConnectError": _("the connection was refused"),
}


KEY_REJECTED = ProviderSentence(
    _("The provider of %(model)s rejected the API key."),
    _("The provider of %(model)s rejected the API key: %(words)s"),
)
RATE_LIMITED = ProviderSentence(
    _("%(model)s is rate limited by its provider."),
    _("%(model)s is rate limited by its provider: %(words)s"),
)
PROVIDER_ERROR = ProviderSentence(
    _("The provider of %(model)s returned an error (HTTP %(status)s)."),
    _("The provider of %(model)s returned an error (HTTP %(status)s): %(words)s"),
)
REQUEST_REJECTED = ProviderSentence(
    _("The provider of %(model)s rejected the request."),
    _("The provider of %(model)s rejected the request: %(words)s"),
)
NOT_CONNECTED = _("Couldn't connect to the model %(model)s: %(reason)s.")
ANSWER_CUT_OFF = _("The response from %(model)s was cut off.")
NO_RESPONSE = _("%(model)s didn't respond in time.")
UNREADABLE_RESPONSE = _("%(model)s sent an unreadable response.")
CONNECTION_LOST_ERRORS = {"ReadError", "WriteError", "RemoteProtocolError", "EOFError"}
MALFORMED_STREAM_ERRORS = {"StreamGarbled", "JSONDecodeError", "UnicodeDecodeError"}
TIMEOUT_ERRORS = {"TimeoutException", "Timeout", "APITimeoutError"}
# What a LiteLLM proxy puts before and after the message of the provider behind it.
PROXY_ERROR = re.compile(r"litellm\.\w+(?:Error|Exception|Timeout): ")
PROXY_NOTE = re.compile(
    r"[.\s]*\b(?:Received Model Group=|No fallback model group found"
    r"|Available Model Group Fallbacks=).*",
    re.S,
)
OPENROUTER_ERROR = re.compile(r"Message: (.*), Metadata: .*, User ID:", re.S)
ERROR_PREFIX = re.compile(
    r"^(?:(?:litellm\.)?(?:\w*Exception )?\w*(?:Error|Exception|Timeout)\s*[:-]\s*)+"
)


def explain(
    error: BaseException, *, model: str, secrets: Iterable[str | None] = ()
) -> AgentError:
    """Return the error with a readable message, without key or traceback."""
    chain = list(_exception_chain(error))
    names = {kind.__name__ for link in chain for kind in type(link).__mro__}
    status = next((s for link in chain if (s := getattr(link, "status_code", None))), None)
    if names & {"ConnectError", "ConnectTimeout"}:
        reason = next(why for name, why in UNREACHABLE_REASONS.items() if name in names)
        destination = repr(model)
        # `_request`, because `request` raises if it wasn't set.
        urls = (getattr(getattr(link, "_request", None), "url", None) for link in chain)
        if (url := next((url for url in urls if url is not None), None)) is not None:
            port = url.port or (443 if url.scheme == "https" else 80)
            destination += f" at {url.host}:{port}"
        return AgentConnectionError(NOT_CONNECTED.fill(model=destination, reason=reason))
    if names & CONNECTION_LOST_ERRORS:
        return AgentConnectionError(ANSWER_CUT_OFF.fill(model=repr(model)), advice=RETRY_ADVICE)
    if names & TIMEOUT_ERRORS or status in (408, 504):
        return ModelTimeout(NO_RESPONSE.fill(model=repr(model)))
    if names & MALFORMED_STREAM_ERRORS:
        return ModelError(UNREADABLE_RESPONSE.fill(model=repr(model)), advice=RETRY_ADVICE)
    # All that the provider said, with codes and details that its message lacks.
    texts = [str(link)[:MAX_MASKED_CHARS] + "\n" + _body_text(link) for link in chain]
    response = ProviderResponse(
        model.partition("/")[0], status, "\n".join(texts)[:MAX_PARSED_CHARS]
    )
    message = _provider_message(error, secrets)
    if cause := find_cause(response):
        return cause.error(model, message, response)
    too_long = "ContextWindowExceededError" in names
    return _status_error(response, model, message, too_long, chain)


def _status_error(
    response: ProviderResponse,
    model: str,
    message: str,
    too_long: bool,
    chain: list[BaseException],
) -> ModelError:
    status = response.status
    if status in (401, 403) or MISSING_KEY.search(message):
        # Only in a body: our own LiteLLM writes the same into its exceptions.
        is_behind_proxy = any(map(PROXY_ERROR.search, map(_body_text, chain)))
        advice = CHECK_PROXY_KEY if is_behind_proxy else CHECK_KEY_ADVICE
        return ModelError(KEY_REJECTED.fill(model, message), advice=advice)
    if status == 429:
        seconds = _retry_after(chain)
        advice = RETRY_LATER_ADVICE
        if seconds is None:
            seconds = wait_seconds(response.text)
        if seconds is not None:
            advice = _("Try again in %(seconds)s s.", seconds=f"{seconds:g}")
        error = RateLimited(RATE_LIMITED.fill(model, message), advice=advice)
        error.retry_after = seconds
        return error
    if cause := find_context_cause(response):
        return cause.error(model, message, response)
    if too_long:
        return ModelError(CHAT_TOO_LONG.fill(model, message), advice=NEW_CHAT)
    if MISSING_PROVIDER.search(message):
        return ModelError(
            _("The model name %(model)s doesn't include a provider.", model=repr(model)),
            advice=_("Enter it as provider/model, e.g. openai/… or anthropic/…."),
        )
    if status == 404:
        return ModelError(MODEL_NOT_FOUND.fill(model, message), advice=CHECK_NAME)
    if status and status >= 500:
        return ProviderFailed(
            PROVIDER_ERROR.fill(model, message, status), advice=RETRY_LATER_ADVICE
        )
    return ModelError(REQUEST_REJECTED.fill(model, message), advice=RETRY_ADVICE)


def _exception_chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error, what LiteLLM wrapped in it, and its causes, once each."""
    visited: list[BaseException] = []
    while error is not None and error not in visited:
        visited.append(error)
        yield error
        inner = getattr(error, "original_exception", None)
        if isinstance(inner, BaseException) and inner not in visited:
            yield inner
        error = error.__cause__ or error.__context__


def _provider_message(error: BaseException, secrets: Iterable[str | None]) -> str:
    """Return the first line of the provider's message, with secrets masked."""
    text = ERROR_PREFIX.sub("", str(getattr(error, "original_exception", None) or error))
    # A proxy wraps the message, or the whole response, of the provider behind it, and LiteLLM
    # puts names and notes around it.
    text = PROXY_NOTE.sub("", ERROR_PREFIX.sub("", _extract_message(text) or text))
    if match := OPENROUTER_ERROR.match(text):
        text = match[1]
    text = _extract_message(text) or text.strip().partition("\n")[0]
    return shorten(mask_secrets(text[:MAX_MASKED_CHARS], *secrets), 300)


def _body_text(error: BaseException) -> str:
    """Return the body that came with an error, without what it repeats of the request."""
    body = getattr(error, "body", None)
    if isinstance(body, str | bytes):
        text = body if isinstance(body, str) else body.decode(errors="replace")
        body = _parse_object(text) if text.lstrip()[:1] in ("{", "[") else text
    return json.dumps(_without_request(body), ensure_ascii=False, default=str) if body else ""


def _without_request(value: Any, depth: int = MAX_BODY_DEPTH) -> Any:
    if not depth:
        return None
    if isinstance(value, Mapping):
        return {
            name: None if name in REQUEST_FIELDS else _without_request(item, depth - 1)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [_without_request(item, depth - 1) for item in value]
    return value


def _extract_message(text: str) -> str:
    """Return the readable message, if the text is JSON or a Python literal."""
    begin = text.find("{")
    body = _parse_object(text[begin:]) if begin >= 0 and len(text) <= MAX_PARSED_CHARS else None
    error = body.get("error") or body if isinstance(body, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else ""


def _parse_object(text: str) -> Any:
    try:
        return json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _retry_after(chain: list[BaseException]) -> float | None:
    """Return the first Retry-After, which is a number of seconds or a date."""
    for link in chain:
        headers = getattr(getattr(link, "response", None), "headers", None) or {}
        if value := headers.get("retry-after"):
            with suppress(ValueError):
                return max(0.0, float(value))
            with suppress(ValueError):
                return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
            return None
    return None
