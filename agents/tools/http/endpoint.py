"""The URL of an HTTP tool: its path with arguments, and its query."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self
from unicodedata import category
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from ..egress import EgressRefused, validate_url
from .binding import to_text

MAX_URL_CHARS = 8_000
PATH_PARAMETER = re.compile(r"\{([^{}/]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A URL whose path may have placeholders."""

    parts: SplitResult
    host: str

    @classmethod
    def read(cls, template: str, parameters: Mapping[str, Any]) -> Self:
        parts = urlsplit(template)
        without_path = parts._replace(path="").geturl()
        if "{" in without_path or "}" in without_path:
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
        encoded = urlencode(query)
        query_text = "&".join(part for part in (self.parts.query, encoded) if part)
        url = self.parts._replace(path=path, query=query_text).geturl()
        if len(url) > MAX_URL_CHARS:
            raise ValueError(f"The resulting URL is longer than {MAX_URL_CHARS:,} characters.")
        return url


def query_pairs(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in arguments.items():
        for item in value if isinstance(value, list) else [value]:
            if item is not None:
                yield name, to_text(item)


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
    segments = re.split(r"[/\\]", unquote(path))
    if any(segment.partition(";")[0] in {".", ".."} for segment in segments):
        raise ValueError("The endpoint path can't contain . or .. segments.")
    return path
