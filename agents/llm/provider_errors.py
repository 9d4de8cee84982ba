"""Translates provider errors into messages without secrets."""

import ast
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
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
        self.status_code = int(code) if code.isdigit() else 429 if is_limit else 500


MAX_PARSED_CHARS = 100_000
MAX_MASKED_CHARS = 10_000
MAX_BODY_DEPTH = 12
# Parts of an error that repeat what a person wrote, which may look like any error.
REQUEST_FIELDS = frozenset({"input", "flagged_input", "messages"})
RETRY_ADVICE = "Try again, or choose another model."
RETRY_LATER_ADVICE = "Try again later, or choose another model."
CHECK_KEY_ADVICE = "Check this model's API key."

MISSING_KEY = re.compile(r"missing (credentials|\w+ api.?key)|api_key .*must be set", re.I)
MISSING_PROVIDER = re.compile(r"LLM Provider NOT provided")
# In this order, because a timed-out connection may also have an SSLError among its causes.
UNREACHABLE_REASONS = {
    "gaierror": "the host name couldn't be resolved",
    "ConnectTimeout": "the connection timed out",
    "SSLError": "the TLS connection failed",
    "ConnectError": "the connection was refused",
}


KEY_REJECTED = ProviderSentence(
    "The provider of {model!r} rejected the API key.",
    "The provider of {model!r} rejected the API key: {words}",
)
RATE_LIMITED = ProviderSentence(
    "{model!r} is rate limited by its provider.",
    "{model!r} is rate limited by its provider: {words}",
)
PROVIDER_ERROR = ProviderSentence(
    "The provider of {model!r} returned an error (HTTP {status}).",
    "The provider of {model!r} returned an error (HTTP {status}): {words}",
)
REQUEST_REJECTED = ProviderSentence(
    "The provider of {model!r} rejected the request.",
    "The provider of {model!r} rejected the request: {words}",
)
NOT_CONNECTED = "Couldn't connect to the model {where}: {reason}."
ANSWER_CUT_OFF = "The answer from {model!r} was cut off."
NO_RESPONSE = "{model!r} didn't respond in time."
UNREADABLE_RESPONSE = "{model!r} sent an unreadable response."
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
        reason = next(words for name, words in UNREACHABLE_REASONS.items() if name in names)
        where = f"{model!r}{_request_address(chain)}"
        return AgentConnectionError(NOT_CONNECTED.format(where=where, reason=reason))
    if names & CONNECTION_LOST_ERRORS:
        return AgentConnectionError(ANSWER_CUT_OFF.format(model=model), advice=RETRY_ADVICE)
    if names & TIMEOUT_ERRORS or status in (408, 504):
        return ModelTimeout(NO_RESPONSE.format(model=model))
    if names & MALFORMED_STREAM_ERRORS:
        return ModelError(UNREADABLE_RESPONSE.format(model=model), advice=RETRY_ADVICE)
    response = ProviderResponse(model.partition("/")[0], status, _response_text(chain))
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
        seconds = wait_seconds(response.text) if seconds is None else seconds
        return _rate_limit_error(RATE_LIMITED.fill(model, message), seconds)
    if cause := find_context_cause(response):
        return cause.error(model, message, response)
    if too_long:
        return ModelError(CHAT_TOO_LONG.fill(model, message), advice=NEW_CHAT)
    if MISSING_PROVIDER.search(message):
        return ModelError(
            f"The model name {model!r} doesn't include a provider.",
            advice="Enter it as provider/model, e.g. openai/… or anthropic/….",
        )
    if status == 404:
        return ModelError(MODEL_NOT_FOUND.fill(model, message), advice=CHECK_NAME)
    if status and status >= 500:
        return ProviderFailed(
            PROVIDER_ERROR.fill(model, message, status), advice=RETRY_LATER_ADVICE
        )
    return ModelError(REQUEST_REJECTED.fill(model, message), advice=RETRY_ADVICE)


def _rate_limit_error(sentence: str, seconds: float | None) -> RateLimited:
    wait = RETRY_LATER_ADVICE if seconds is None else f"Try again in {seconds:g} s."
    error = RateLimited(sentence, advice=wait)
    error.retry_after = seconds
    return error


def _exception_chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error, what LiteLLM wrapped in it, and its causes, once each."""
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        seen.append(error)
        yield error
        inner = getattr(error, "original_exception", None)
        if isinstance(inner, BaseException) and inner not in seen:
            yield inner
        error = error.__cause__ or error.__context__


def _provider_message(error: BaseException, secrets: Iterable[str | None]) -> str:
    """Return the first line of the provider's message, with secrets masked."""
    text = ERROR_PREFIX.sub("", str(getattr(error, "original_exception", None) or error))
    # A proxy wraps the message, or the whole response, of the provider behind it.
    text = _unwrap(_extract_message(text) or text)
    text = _extract_message(text) or text.strip().partition("\n")[0]
    return shorten(mask_secrets(text[:MAX_MASKED_CHARS], *secrets), 300)


def _unwrap(text: str) -> str:
    """Return the text without the names and notes that LiteLLM puts around it."""
    text = PROXY_NOTE.sub("", ERROR_PREFIX.sub("", text))
    found = OPENROUTER_ERROR.match(text)
    return found[1] if found else text


def _response_text(chain: list[BaseException]) -> str:
    """Return all that the provider said, with codes and details that its message lacks."""
    parts = [str(link)[:MAX_MASKED_CHARS] + "\n" + _body_text(link) for link in chain]
    return "\n".join(parts)[:MAX_PARSED_CHARS]


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


def _request_address(chain: list[BaseException]) -> str:
    # `_request`, because `request` raises if it wasn't set.
    for link in chain:
        url = getattr(getattr(link, "_request", None), "url", None)
        if url is not None:
            return f" at {url.host}:{url.port or (443 if url.scheme == 'https' else 80)}"
    return ""


def _retry_after(chain: list[BaseException]) -> float | None:
    for link in chain:
        headers = getattr(getattr(link, "response", None), "headers", None) or {}
        if value := headers.get("retry-after"):
            return _parse_retry_after(value)
    return None


def _parse_retry_after(value: str) -> float | None:
    """Parse Retry-After, which is a number of seconds or a date."""
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None
