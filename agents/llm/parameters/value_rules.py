"""Rules for the values of parameters, as text and as a test."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agents.engine.sentences import Sentence as _

from .addresses import address_problem

MAX_TEXT_CHARS = 2_000
MAX_SECRET_CHARS = 20_000
MAX_ITEMS = 50
GOOGLE_TOKEN_URL = "https://oauth2.googleapis.com/token"
SERVICE_ACCOUNT_FIELDS = frozenset(
    {
        "auth_provider_x509_cert_url",
        "auth_uri",
        "client_email",
        "client_id",
        "client_x509_cert_url",
        "private_key",
        "private_key_id",
        "project_id",
        "token_uri",
        "type",
        "universe_domain",
    }
)
REFERENCE_PATTERN = re.compile(r"\s*(?:oidc/|file:)|.*os\.environ/", re.IGNORECASE | re.DOTALL)
VISIBLE_ASCII = re.compile(r"[!-~]+")
WORD_PATTERN = re.compile(r"[A-Za-z0-9_][\w .:+-]{0,99}", re.ASCII)
SLUG_PATTERN = re.compile(r"[A-Za-z0-9_~][\w./:~+@-]{0,199}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ValueRule:
    """A rule for values, as text and as a test."""

    description: str
    fits: Callable[[Any], bool]
    is_address: bool = False
    is_secret: bool = False


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT_CHARS


def pattern_rule(description: str, pattern: re.Pattern[str]) -> ValueRule:
    return ValueRule(
        description, lambda value: isinstance(value, str) and bool(pattern.fullmatch(value))
    )


def list_of(description: str, rule: ValueRule) -> ValueRule:
    def fits(value: Any) -> bool:
        return (
            isinstance(value, list) and len(value) <= MAX_ITEMS and all(map(rule.fits, value))
        )

    return ValueRule(description, fits)


def object_of(**rules: ValueRule) -> ValueRule:
    def fits(value: Any) -> bool:
        return isinstance(value, dict) and all(
            name in rules and rules[name].fits(item) for name, item in value.items()
        )

    return ValueRule(_("an object with %(names)s", names=", ".join(sorted(rules))), fits)


def one_of(description: str, *rules: ValueRule) -> ValueRule:
    return ValueRule(description, lambda value: any(rule.fits(value) for rule in rules))


def _is_flat_object(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and len(value) <= MAX_ITEMS
        and all(isinstance(name, str) and WORD_PATTERN.fullmatch(name) for name in value)
        and all(
            isinstance(item, bool) or _is_number(item) or _is_word(item)
            for item in value.values()
        )
    )


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and bool(WORD_PATTERN.fullmatch(value))


def is_credential(value: Any) -> bool:
    return (
        isinstance(value, str)
        and len(value) <= MAX_SECRET_CHARS
        and bool(VISIBLE_ASCII.fullmatch(value))
        and not REFERENCE_PATTERN.match(value)
    )


def is_service_account(value: Any) -> bool:
    """Whether it is a service account key.

    Other kinds read files, call hosts or run programs.
    """
    if not isinstance(value, str) or len(value) > MAX_SECRET_CHARS:
        return False
    try:
        data = json.loads(value)
    except (ValueError, RecursionError):
        return False
    return (
        isinstance(data, dict)
        and data.keys() <= SERVICE_ACCOUNT_FIELDS
        and all(isinstance(item, str) for item in data.values())
        and data.get("type") == "service_account"
        and data.get("token_uri", GOOGLE_TOKEN_URL) == GOOGLE_TOKEN_URL
        and data.get("universe_domain", "googleapis.com") == "googleapis.com"
    )


NUMBER = ValueRule(_("a number"), _is_number)
INTEGER = ValueRule(_("a whole number"), _is_integer)
POSITIVE_INTEGER = ValueRule(
    _("a whole number above 0"), lambda value: _is_integer(value) and value > 0
)
BOOLEAN = ValueRule(_("true or false"), lambda value: isinstance(value, bool))
TEXT = ValueRule(_("text (max %(limit)s characters)", limit=MAX_TEXT_CHARS), _is_text)
SHORT_TEXT = ValueRule(_("a word"), _is_word)
SHORT_TEXT_LIST = list_of(_("a list of words"), SHORT_TEXT)
SLUG_LIST = list_of(_("a list of names"), pattern_rule(_("a name"), SLUG_PATTERN))
FLAT_OBJECT = ValueRule(_("an object with text, number or true/false values"), _is_flat_object)
NUMBER_OBJECT = ValueRule(
    _("an object with number values"),
    lambda value: isinstance(value, dict) and all(map(_is_number, value.values())),
)
STOP_SEQUENCES = ValueRule(
    _("text or a list of text values"),
    lambda value: (
        _is_text(value)
        or (isinstance(value, list) and len(value) <= MAX_ITEMS and all(map(_is_text, value)))
    ),
)
DURATION_WORDS = _("a number of seconds or a duration, e.g. 30s or 5m")
DURATION = one_of(
    DURATION_WORDS, NUMBER, pattern_rule(DURATION_WORDS, re.compile(r"-?\d{1,6}[smh]?"))
)
CREDENTIAL = ValueRule(_("the secret itself, without spaces"), is_credential, is_secret=True)
URL_VALUE = ValueRule(
    _("a full URL, e.g. https://host/v1"),
    lambda value: isinstance(value, str) and not address_problem(value),
    is_address=True,
)
REASONING_EFFORT = one_of(
    _("a word, or an object with effort and summary"),
    SHORT_TEXT,
    object_of(effort=SHORT_TEXT, summary=SHORT_TEXT),
)
THINKING = object_of(type=SHORT_TEXT, budget_tokens=INTEGER, display=SHORT_TEXT)
