"""HTTP tools: an OpenAI-style definition with an HTTP endpoint."""

import asyncio
import base64
import binascii
import codecs
import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from email.message import Message
from http import HTTPStatus
from typing import Any, Self
from unicodedata import category
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from agents.engine import json_schema
from agents.engine.errors import BadSchema
from agents.engine.privacy import MASK
from agents.engine.tool import Effect, ToolInput, ToolResult, uncertain_message

from .egress import (
    Egress,
    EgressFailed,
    EgressRefused,
    Response,
    ResponseTooLarge,
    fetch,
    validate_url,
)
from .http_binding import HEADER_NAME, RESERVED_HEADERS, HttpBinding, to_json, to_text

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
MAX_INPUT_BYTES = 200_000
MAX_URL_CHARS = 8_000
MAX_OUTPUT_CHARS = 100_000
MAX_ERROR_CHARS = 500
MIN_SECRET_CHARS = 6

FUNCTION_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
PATH_PARAMETER = re.compile(r"\{([^{}/]*)\}")
PUBLIC_HEADERS = re.compile(
    r"accept(-language)?|content-type|user-agent|prefer|.*version", re.I
)
SECRET_NAMES = re.compile(r"key|token|secret|pass|auth|sig|appid", re.I)
# A schema without these keywords that doesn't mention other arguments accepts none.
OPEN_KEYWORDS = {"additionalProperties", "$ref", "allOf", "anyOf", "oneOf", "patternProperties"}
TEXT_SUBTYPES = {
    "json",
    "xml",
    "yaml",
    "x-yaml",
    "javascript",
    "x-ndjson",
    "x-www-form-urlencoded",
}
CHARSETS = {
    *("utf-8", "ascii", "utf-16", "iso8859-1", "cp1252", "shift_jis", "cp932", "euc_jp"),
    *("iso2022_jp", "gb18030", "gbk", "big5", "euc_kr", "iso8859-15", "koi8-r"),
}


class HttpTool:
    """Sends its input to an endpoint, if the input matches the schema.

    Arguments named in braces go into the path; the others go into the query of a GET, or as a
    JSON object into the body of other methods. The `http` part of a definition can say more
    exactly where each argument goes (`http_binding`).
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
        function = _parse_function(definition)
        self.name: str = function["name"]
        self.description: str = function.get("description") or ""
        self.parameters = _parse_parameters(function)
        self.method = _validate_method(method)
        self.effect: Effect = effect or ("read" if method == "GET" else "at_most_once")
        self.needs_approval = self.effect != "read"
        self.timeout = timeout + 2  # after our own limit, which has a clearer message
        self._endpoint = _Endpoint.read(endpoint, self.parameters)
        self.reaches = f"{self.method} {self._endpoint.template}"
        self._binding = HttpBinding.read(function.get("http"), self.parameters)
        given = _validate_headers(headers or {})
        self._secret_query = self._binding.take_query_secrets(given)
        self._headers = given
        self._policy = replace(egress or Egress(), timeout=timeout)
        closed_query = [*self._endpoint.query, *self._secret_query.items()]
        self._secrets = _secret_forms(self._headers, closed_query, self._secret_query)

    async def execute(self, input: ToolInput, /) -> ToolResult:
        try:
            # In a thread, because validating large arguments takes a while.
            url, headers, content = await asyncio.to_thread(self._request, input)
        except ValueError as error:
            unfit = f"Invalid input for {self.name}: {error}"
            return ToolResult(error=self._mask_secrets(unfit), mendable=True)
        try:
            response = await fetch(
                self.method, url, policy=self._policy, headers=headers, content=content
            )
        except (EgressRefused, EgressFailed) as error:
            return self._error_result(error)
        return await asyncio.to_thread(self._result, response)

    def _request(self, input: ToolInput) -> tuple[str, dict[str, str], bytes | None]:
        arguments = self._validate_input(input)
        path, rest = self._endpoint.fill_path(arguments)
        if self._binding.is_given:
            return self._bound_request(path, rest)
        has_body = self.method != "GET" and (bool(rest) or self.method != "DELETE")
        url = self._endpoint.build_url(path, _query_pairs({} if has_body else rest))
        body = to_json(rest) if has_body else None
        return url, self._build_headers("application/json" if has_body else ""), body

    def _bound_request(
        self, path: str, arguments: Mapping[str, Any]
    ) -> tuple[str, dict[str, str], bytes | None]:
        """Return a request whose definition says where each argument goes."""
        sent = self._binding.place(arguments)
        if taken := {name for name, _ in sent.query} & {*self._secret_query}:
            raise ValueError(f"{min(taken)!r} is set automatically.")
        url = self._endpoint.build_url(path, [*sent.query, *self._secret_query.items()])
        headers = self._build_headers(sent.content_type)
        configured = {name.lower() for name in headers}
        more = {k: v for k, v in sent.headers.items() if k.lower() not in configured}
        return url, {**more, **headers}, sent.content

    def _build_headers(self, content_type: str) -> dict[str, str]:
        """Return the configured headers, with our defaults."""
        ours = {"Accept": "application/json, text/*"}
        if content_type:
            ours["Content-Type"] = content_type
        names = {name.lower() for name in self._headers}
        return {k: v for k, v in ours.items() if k.lower() not in names} | self._headers

    def _validate_input(self, input: ToolInput) -> dict[str, Any]:
        """Return the arguments by name; raise ValueError with the violations."""
        first = list(self.parameters.get("properties", {}))[:1]
        arguments = dict.fromkeys(first, input) if isinstance(input, str) else dict(input)
        if len(to_json(arguments)) > MAX_INPUT_BYTES:
            raise ValueError(f"The input is larger than {MAX_INPUT_BYTES:,} bytes.")
        try:
            problems = json_schema.violations(self.parameters, arguments)
        except (json_schema.TooManyChecks, RecursionError) as error:
            raise ValueError("The input is too large or nested too deeply to check.") from error
        if problems:
            raise ValueError(f"{'; '.join(problems)}.")
        return arguments

    def _error_result(self, error: EgressRefused | EgressFailed) -> ToolResult:
        was_sent = isinstance(error, EgressFailed) and error.was_sent
        is_large = isinstance(error, ResponseTooLarge)
        sentence = str(error)
        if was_sent and self.effect == "at_most_once":
            sentence = uncertain_message(sentence)
        if is_large and self.effect == "read":
            sentence = f"{sentence} Request less data."
        return ToolResult(error=self._mask_secrets(sentence), mendable=is_large)

    def _result(self, response: Response) -> ToolResult:
        host = self._endpoint.host
        kind, charset = _content_type(response)
        text = self._mask_secrets(_decode(response.content, charset)) if _is_text(kind) else ""
        if response.status >= 300:
            return _status_error(host, response.status, text)
        if response.content and not _is_text(kind):
            return ToolResult(error=f"{host} returned {kind}, which isn't text.", mendable=True)
        if not text.strip():
            return ToolResult(
                f"Done. The response was empty ({_format_status(response.status)})."
            )
        is_data = "json" in kind
        visible = self._mask_secrets(_pretty_json(text)) if is_data else text
        max_age, is_private = _freshness(response.headers.get("cache-control", ""))
        return ToolResult(
            _truncate(visible), is_data=is_data, max_age=max_age, is_private=is_private
        )

    def _mask_secrets(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class _Endpoint:
    """A URL whose path may have placeholders."""

    parts: SplitResult
    host: str

    @classmethod
    def read(cls, template: str, parameters: Mapping[str, Any]) -> Self:
        parts = urlsplit(template)
        around = parts._replace(path="").geturl()
        if "{" in around or "}" in around:
            raise ValueError("Braces are allowed only in the path of the endpoint URL.")
        if parts.fragment:
            raise ValueError("The endpoint URL can't contain #.")
        _check_path_parameters(parts.path, parameters)
        example = parts._replace(path=_safe_path(PATH_PARAMETER.sub("x", parts.path))).geturl()
        try:
            return cls(parts=parts, host=validate_url(example).host)
        except EgressRefused as refusal:
            raise ValueError(f"The endpoint URL can't be used: {refusal}") from refusal

    @property
    def template(self) -> str:
        return self.parts.geturl()

    @property
    def query(self) -> list[tuple[str, str]]:
        return parse_qsl(self.parts.query, keep_blank_values=True)

    def fill_path(self, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the path with its arguments, and the remaining arguments."""
        path = self.parts.path
        names = PATH_PARAMETER.findall(path)
        filled = PATH_PARAMETER.sub(
            lambda place: _encode_segment(place[1], arguments[place[1]]), path
        )
        rest = {name: value for name, value in arguments.items() if name not in names}
        return _safe_path(filled), rest

    def build_url(self, path: str, pairs: Iterable[tuple[str, str]]) -> str:
        query = list(pairs)
        if duplicates := {name for name, _ in query} & {*dict(self.query)}:
            raise ValueError(f"{min(duplicates)!r} is already part of the endpoint URL.")
        more = urlencode(query)
        whole = "&".join(part for part in (self.parts.query, more) if part)
        url = self.parts._replace(path=path, query=whole).geturl()
        if len(url) > MAX_URL_CHARS:
            raise ValueError(f"The resulting URL is longer than {MAX_URL_CHARS:,} characters.")
        return url


def _parse_function(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the function, also if it is wrapped as `{"type": "function", …}`."""
    function = definition.get("function", definition)
    if not isinstance(function, Mapping):
        raise ValueError("The function definition must be an object.")
    if not FUNCTION_NAME.fullmatch(str(function.get("name") or "")):
        raise ValueError(
            f"Invalid function name {function.get('name')!r}. "
            "Use 1–64 letters, digits, '_' or '-'."
        )
    if not isinstance(function.get("description") or "", str):
        raise ValueError("The function description must be text.")
    return function


def _parse_parameters(function: Mapping[str, Any]) -> dict[str, Any]:
    schema = function.get("parameters", {})
    if schema in (None, {}):
        schema = {"type": "object", "properties": {}}
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        raise ValueError("The function parameters must be a JSON Schema of type object.")
    try:
        usable = json_schema.validate_schema(schema)
    except BadSchema as error:
        raise ValueError(f"The function parameters aren't valid: {error}") from error
    if not usable.keys() & OPEN_KEYWORDS:
        usable["additionalProperties"] = False
    return usable


def _validate_method(method: str) -> str:
    if method not in METHODS:
        raise ValueError(f"The method must be one of {', '.join(METHODS)}, not {method!r}.")
    return method


def _validate_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers; error messages never contain a value, which may be a secret."""
    for name, value in headers.items():
        if not HEADER_NAME.fullmatch(name):
            raise ValueError(f"{name!r} isn't a valid header name.")
        if name.lower() in RESERVED_HEADERS:
            raise ValueError(f"The header {name!r} is set automatically.")
        if not isinstance(value, str) or not (value.isascii() and value.isprintable()):
            raise ValueError(
                f"The value of {name!r} can only contain printable ASCII characters."
            )
    return {name: value.strip() for name, value in headers.items()}


def _secret_forms(
    headers: Mapping[str, str], query: list[tuple[str, str]], secret_names: Container[str]
) -> list[str]:
    """Return secrets in every form in which they may come back, longest first."""
    closed = [value for name, value in headers.items() if not PUBLIC_HEADERS.fullmatch(name)]
    closed += [v for name, v in query if name in secret_names or SECRET_NAMES.search(name)]
    known = {part for value in closed for part in _credential_parts(value)}
    forms = {form for s in known for form in (s, json.dumps(s)[1:-1], quote(s, safe=""))}
    return sorted((f for f in forms if len(f) >= MIN_SECRET_CHARS), key=len, reverse=True)


def _credential_parts(value: str) -> Iterator[str]:
    """Yield `Basic bmFtZTp3b3Jk` whole, without its scheme, and decoded."""
    yield value
    scheme, _, token = value.partition(" ")
    yield token
    if scheme.lower() == "basic":
        try:
            pair = base64.b64decode(token, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return
        yield from (pair, pair.partition(":")[2])


def _check_path_parameters(path: str, parameters: Mapping[str, Any]) -> None:
    if set("{}") & set(PATH_PARAMETER.sub("", path)):
        raise ValueError("The braces in the endpoint path don't match.")
    for name in PATH_PARAMETER.findall(path):
        if name not in parameters.get("properties", {}):
            raise ValueError(f"The endpoint path uses {name!r}, which isn't a parameter.")
        if name not in parameters.get("required", ()):
            raise ValueError(
                f"The endpoint path uses {name!r}, so the parameter must be required."
            )


def _encode_segment(name: str, value: Any) -> str:
    if isinstance(value, list) and value:
        return ",".join(_encode_segment(name, item) for item in value)
    if value is None or isinstance(value, list | dict) or value == "":
        raise ValueError(f"{name!r} must be text or a number to be part of the URL.")
    text = to_text(value)
    # Many servers decode these before reading the path.
    if any(sign in "/\\%" or category(sign) == "Cc" for sign in text):
        raise ValueError(f"{name!r} can't contain /, \\, % or control characters.")
    return quote(text, safe="")


def _safe_path(path: str) -> str:
    """Reject dot segments; encoded dots and slashes also work on some servers."""
    steps = re.split(r"[/\\]", unquote(path))
    if any(step.partition(";")[0] in {".", ".."} for step in steps):
        raise ValueError("The endpoint path can't contain . or .. segments.")
    return path


def _query_pairs(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in arguments.items():
        for item in value if isinstance(value, list) else [value]:
            if item is not None:
                yield name, to_text(item)


def _content_type(response: Response) -> tuple[str, str]:
    """Return the content type and charset; text if unspecified."""
    message = Message()
    message["content-type"] = response.headers.get("content-type", "text/plain")
    return message.get_content_type(), message.get_content_charset() or "utf-8"


def _freshness(control: str) -> tuple[float | None, bool]:
    """Return how many seconds a response is fresh (None: not said), and if it is private."""
    parts = {part.strip().lower() for part in control.split(",")}
    seconds = [part.partition("=")[2].strip('"') for part in parts if "max-age=" in part]
    ages = [float(text) for text in seconds if text.isascii() and text.isdigit()]
    if parts & {"no-store", "no-cache"}:
        ages.append(0.0)
    return min(ages, default=None), any(part.startswith("private") for part in parts)


def _is_text(kind: str) -> bool:
    main, _, sub = kind.partition("/")
    return main == "text" or sub in TEXT_SUBTYPES or sub.endswith(("+json", "+xml"))


def _decode(content: bytes, charset: str) -> str:
    # Only charsets that are plain tables, because some of Python's codecs take forever.
    try:
        name = codecs.lookup(charset).name
    except LookupError:
        name = "utf-8"
    known = name if name in CHARSETS else "utf-8"
    return content.decode(known, errors="replace").replace("\0", "\ufffd")


def _status_error(host: str, status: int, text: str) -> ToolResult:
    detail = " ".join(text.split())
    short = detail if len(detail) <= MAX_ERROR_CHARS else f"{detail[:MAX_ERROR_CHARS]}…"
    answer = _format_status(status)
    error = (
        f"{host} returned HTTP {answer}: {short}"
        if short
        else f"{host} returned HTTP {answer}."
    )
    return ToolResult(error=error, mendable=400 <= status < 500 and status not in {408, 429})


def _format_status(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _pretty_json(text: str) -> str:
    """Format JSON over several lines, if it doesn't get too long."""
    if len(text) > MAX_OUTPUT_CHARS:
        return text
    encoder, pieces, length = json.JSONEncoder(indent=2, ensure_ascii=False), [], 0
    try:
        for piece in encoder.iterencode(json.loads(text)):
            pieces.append(piece)
            length += len(piece)
            if length > MAX_OUTPUT_CHARS:
                return text
    except (ValueError, RecursionError):
        return text
    return "".join(pieces).encode(errors="replace").decode()  # replaces lone surrogates


def _truncate(text: str) -> str:
    if len(text) <= MAX_OUTPUT_CHARS:
        return text
    cut = len(text) - MAX_OUTPUT_CHARS
    return f"{text[:MAX_OUTPUT_CHARS]}\n[… {cut:,} more characters cut]"
