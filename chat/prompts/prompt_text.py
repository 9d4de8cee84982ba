"""The prompt library: texts with variables, filled in before they reach the composer.

A variable is `{{name}}`, with a default `{{name: text}}`, or with choices
`{{name: one | two}}`.
"""

import re
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext as _

from agents.accounts.users import profiles
from agents.db.sanitize import sanitize_text
from agents.web.presentation.formats import dates
from chat.models import Prompt

MAX_TEXT_CHARS = 20_000
MAX_NAME_CHARS = 40
MAX_TITLE_CHARS = 80
MAX_VARIABLE_CHARS = 60
MAX_PROMPTS = 500
MAX_VARIABLES = 20
MAX_OPTIONS = 30
NAME_PATTERN = re.compile(r"[\w-]+")
# Full-width signs, too: Japanese keyboards type those first.
VARIABLE_PATTERN = re.compile(
    r"\{\{\s*([^{}|:：｜\s](?:[^{}|:：｜]*[^{}|:：｜\s])?)\s*(?:[:：]([^{}]*))?\}\}"
)
OPTION_SEPARATOR = re.compile(r"[|｜]")
# Names of the composer's own commands.
RESERVED_NAMES = frozenset(
    {"workflow", "new", "temporary", "export", "stop", "retry", "prompts"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A place to fill in: any text, or one of its options."""

    name: str
    default: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedPrompt:
    """A text in pieces: words, and numbers of its variables."""

    pieces: list[str | int]
    variables: list[Variable]


def parse(text: str, values: dict[str, str] | None = None) -> ParsedPrompt:
    """Split a text at its variables; those with a value become words."""
    pieces: list[str | int] = []
    variables: list[Variable] = []
    numbers: dict[str, int] = {}
    end = 0
    for match in VARIABLE_PATTERN.finditer(text):
        pieces.append(text[end : match.start()])
        end = match.end()
        options = [option.strip() for option in OPTION_SEPARATOR.split(match[2] or "")]
        options = list(dict.fromkeys(filter(None, options)))
        variable = Variable(
            name=match[1],
            default=options[0] if options else "",
            options=tuple(options) if len(options) > 1 else (),
        )
        if values is not None and variable.name in values:
            pieces.append(values[variable.name])
            continue
        if variable.name not in numbers:
            numbers[variable.name] = len(variables)
            variables.append(variable)
        elif not variables[numbers[variable.name]].default and variable.default:
            variables[numbers[variable.name]] = variable
        pieces.append(numbers[variable.name])
    pieces.append(text[end:])
    return ParsedPrompt(pieces=[p for p in pieces if p != ""], variables=variables)


def system_values(user: User) -> dict[str, str]:
    """Return what the product fills in: in the user's language, time zone and format."""
    time = timezone.localtime()
    name = profiles.of_user(user).display_name or user.get_full_name() or user.get_username()
    return {
        "current_date": dates.date_text(time),
        "current_datetime": dates.datetime_text(time),
        "user_name": name,
    }


def normalize_name(text: str) -> str:
    """Return a name as it is typed after the slash: lowercase, without spaces."""
    name = re.sub(r"\s+", "-", sanitize_text(text).strip().lstrip("/／").casefold())
    return name[:MAX_NAME_CHARS].strip("-")


def suggest_name(title: str, user: User) -> str:
    """Return a free name for a title."""
    base = slugify(title, allow_unicode=True)[: MAX_NAME_CHARS - 4] or "prompt"
    prompts = Prompt.objects.present().filter(user=user)
    used_names = RESERVED_NAMES.union(prompts.values_list("name", flat=True))
    names = [base, *(f"{base}-{number}" for number in range(2, MAX_PROMPTS + 3))]
    return next(name for name in names if name not in used_names)


def is_at_limit(user: User) -> bool:
    return Prompt.objects.present().filter(user=user).count() >= MAX_PROMPTS


def problems(name: str, title: str, text: str) -> dict[str, str]:
    """Return what is wrong with the texts of a prompt, by field."""
    by_field: dict[str, str] = {}
    if not name:
        by_field["name"] = _("Enter a name.")
    elif not NAME_PATTERN.fullmatch(name):
        by_field["name"] = _("Use only letters, digits, hyphens and underscores.")
    elif name in RESERVED_NAMES:
        by_field["name"] = _("/%(name)s is a command. Choose another name.") % {"name": name}
    if not title:
        by_field["title"] = _("Enter a title.")
    if problem := _text_problem(text):
        by_field["text"] = problem
    return by_field


def _text_problem(text: str) -> str:
    if not text.strip():
        return _("Enter the text of the prompt.")
    if len(text) > MAX_TEXT_CHARS:
        return _("The text has %(size)s characters. The limit is %(most)s.") % {
            "size": f"{len(text):,}",
            "most": f"{MAX_TEXT_CHARS:,}",
        }
    variables = parse(text).variables
    if len(variables) > MAX_VARIABLES:
        return _("The text has %(count)d variables. The limit is %(most)d.") % {
            "count": len(variables),
            "most": MAX_VARIABLES,
        }
    for variable in variables:
        if len(variable.name) > MAX_VARIABLE_CHARS:
            return _("Variable names can have up to %(most)d characters.") % {
                "most": MAX_VARIABLE_CHARS
            }
        if len(variable.options) > MAX_OPTIONS:
            return _("“%(name)s” has %(count)d choices. The limit is %(most)d.") % {
                "name": variable.name,
                "count": len(variable.options),
                "most": MAX_OPTIONS,
            }
    return ""
