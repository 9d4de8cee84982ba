"""The URL of an HTTP tool: its path with arguments, and its query."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self
from unicodedata import category
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from agents.engine.sentences import Sentence as _

from ..egress import EgressRefused, validate_url
from .binding import to_text

MAX_URL_CHARS = 8_000
PATH_PARAMETER = re.compile(r"\{([^{}/]*)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A URL whose path may have placeholders."""

    url: SplitResult
    host: str

    @classmethod
    def read(cls, template: str, parameters: Mapping[str, Any]) -> Self:
        url = urlsplit(template)
        without_path = url._replace(path="").geturl()
        if "{" in without_path or "}" in without_path:
            raise ValueError(_("Braces are allowed only in the path of the endpoint URL."))
        if url.fragment:
            raise ValueError(_("The endpoint URL can't contain #."))
        if set("{}") & set(PATH_PARAMETER.sub("", url.path)):
            raise ValueError(_("The braces in the endpoint path don't match."))
        for name in PATH_PARAMETER.findall(url.path):
            if name not in parameters.get("properties", {}):
                raise ValueError(
                    _(
                        "The endpoint path uses %(name)s, which isn't a parameter.",
                        name=repr(name),
                    )
                )
            if name not in parameters.get("required", ()):
                raise ValueError(
                    _(
                        "The endpoint path uses %(name)s, so the parameter must be required.",
                        name=repr(name),
                    )
                )
        example = url._replace(path=_safe_path(PATH_PARAMETER.sub("x", url.path))).geturl()
        try:
            return cls(url=url, host=validate_url(example).host)
        except EgressRefused as refusal:
            raise ValueError(
                _("The endpoint URL can't be used: %(why)s", why=refusal)
            ) from refusal

    @property
    def template(self) -> str:
        return self.url.geturl()

    @property
    def query(self) -> list[tuple[str, str]]:
        return parse_qsl(self.url.query, keep_blank_values=True)

    def fill_path(self, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the path with its arguments, and the remaining arguments."""
        path = self.url.path
        names = PATH_PARAMETER.findall(path)
        filled = PATH_PARAMETER.sub(
            lambda match: _encode_segment(match[1], arguments[match[1]]), path
        )
        remaining = {name: value for name, value in arguments.items() if name not in names}
        return _safe_path(filled), remaining

    def build_url(self, path: str, pairs: Iterable[tuple[str, str]]) -> str:
        query = list(pairs)
        if duplicates := {name for name, _ in query} & {*dict(self.query)}:
            raise ValueError(
                _("%(name)s is already part of the endpoint URL.", name=repr(min(duplicates)))
            )
        query_text = "&".join(filter(None, (self.url.query, urlencode(query))))
        url = self.url._replace(path=path, query=query_text).geturl()
        if len(url) > MAX_URL_CHARS:
            raise ValueError(
                _(
                    "The resulting URL is longer than %(limit)s characters.",
                    limit=f"{MAX_URL_CHARS:,}",
                )
            )
        return url


def query_pairs(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in arguments.items():
        for item in value if isinstance(value, list) else [value]:
            if item is not None:
                yield name, to_text(item)


def _encode_segment(name: str, value: Any) -> str:
    if isinstance(value, list) and value:
        return ",".join(_encode_segment(name, item) for item in value)
    if value is None or isinstance(value, list | dict) or value == "":
        raise ValueError(
            _("%(name)s must be text or a number to be part of the URL.", name=repr(name))
        )
    text = to_text(value)
    # Many servers decode these before reading the path.
    if any(char in "/\\%" or category(char) == "Cc" for char in text):
        raise ValueError(
            _("%(name)s can't contain /, \\, %% or control characters.", name=repr(name))
        )
    return quote(text, safe="")


def _safe_path(path: str) -> str:
    """Reject dot segments; encoded dots and slashes also work on some servers."""
    segments = re.split(r"[/\\]", unquote(path))
    if any(segment.partition(";")[0] in {".", ".."} for segment in segments):
        raise ValueError(_("The endpoint path can't contain . or .. segments."))
    return path
