"""Checks a model's settings and a request's parameters."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agents.engine.sentences import Sentence as _

from .addresses import address_problem
from .credentials import has_own_key
from .model_names import (
    FILE_PATH,
    name_problem,
    provider_label,
    provider_of,
    provider_prefix,
    short_name,
)
from .options import (
    AWS_PREFIXES,
    ENGINE_PARAMETERS,
    PROVIDER_SECRETS,
    SAMPLING_PARAMETERS,
    allowed_options,
)
from .settings import ModelSettings, SettingNotAllowed, UnknownProvider
from .value_rules import REFERENCE_PATTERN, STOP_SEQUENCES, ValueRule, is_credential

REGION_SETS_ADDRESS = _("Leave this empty. The region determines the URL.")
UNKNOWN_OPTION = _("%(name)s isn't allowed for %(provider)s. Allowed: %(names)s.")
OPTIONS_NOT_ALLOWED = _(
    "%(name)s isn't allowed for %(provider)s. No settings are allowed here."
)
INVALID_VALUE = _("Invalid value for %(name)s: expected %(form)s.")
REFERENCE_NOT_ALLOWED = _(
    "%(name)s refers to a variable, a file or a service. Enter the value itself."
)
NEEDS_OWN_KEY = _(
    "aws_bedrock_runtime_endpoint needs its own key. Enter an API key, "
    "or aws_access_key_id and aws_secret_access_key."
)


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """A problem and the field of `ModelSettings` it concerns."""

    field: str
    sentence: str
    is_unknown_provider: bool = False


def check(settings: ModelSettings, request: Mapping[str, Any] | None = None) -> None:
    """Raise SettingNotAllowed if a request with these parameters must not be made."""
    for problem in find_problems(settings):
        kind = UnknownProvider if problem.is_unknown_provider else SettingNotAllowed
        raise kind(problem.sentence)
    prefix = provider_prefix(settings.model)
    options = {n: value for n, value in (request or {}).items() if n not in ENGINE_PARAMETERS}
    for _name, sentence in _problems_by_name(options, allowed_options(prefix), prefix):
        raise SettingNotAllowed(sentence)


def find_problems(settings: ModelSettings) -> Iterator[SettingProblem]:
    """Yield all problems, without any values."""
    if sentence := name_problem(settings.model):
        is_unknown = provider_of(settings.model) is None
        yield SettingProblem("model", sentence, is_unknown)
        return
    prefix = provider_prefix(settings.model)
    if settings.base_url and (sentence := address_problem(settings.base_url)):
        yield SettingProblem("base_url", sentence)
    if settings.base_url and prefix in AWS_PREFIXES | {"vertex_ai"}:
        yield SettingProblem("base_url", REGION_SETS_ADDRESS)
    if settings.api_key and not is_credential(settings.api_key):
        yield SettingProblem("api_key", REFERENCE_NOT_ALLOWED.fill(name=_("The API key")))
    if settings.api_version and prefix not in ("azure", "azure_ai"):
        yield SettingProblem(
            "api_version",
            _("%(name)s doesn't use an API version.", name=provider_label(prefix)),
        )
    if settings.region and prefix not in AWS_PREFIXES:
        yield SettingProblem(
            "region", _("%(name)s doesn't use a region.", name=provider_label(prefix))
        )
    allowed = allowed_options(prefix)
    fields = {"api_version": "api_version", "aws_region_name": "region"}
    for name, sentence in _problems_by_name(settings.litellm_options, allowed, prefix):
        has_field = name in fields and name not in settings.options
        if has_field and name not in allowed:
            continue  # already reported for the field
        yield SettingProblem(fields[name] if has_field else "options", sentence)
    yield from _field_problems(
        settings.secrets, PROVIDER_SECRETS.get(prefix, {}), "secrets", prefix
    )
    yield from _field_problems(settings.parameters, SAMPLING_PARAMETERS, "parameters", prefix)
    if "aws_bedrock_runtime_endpoint" in settings.litellm_options and not has_own_key(settings):
        yield SettingProblem("options", NEEDS_OWN_KEY)


def _field_problems(
    options: Mapping[str, Any], allowed: Mapping[str, ValueRule], field: str, prefix: str
) -> Iterator[SettingProblem]:
    for _name, sentence in _problems_by_name(options, allowed, prefix):
        yield SettingProblem(field, sentence)


def _problems_by_name(
    options: Mapping[str, Any], allowed: Mapping[str, ValueRule], prefix: str
) -> Iterator[tuple[str, str]]:
    for name, value in options.items():
        if value is None:
            continue
        if (rule := allowed.get(name)) is None:
            sentence = UNKNOWN_OPTION if allowed else OPTIONS_NOT_ALLOWED
            yield (
                name,
                sentence.fill(
                    name=short_name(name),
                    provider=provider_label(prefix),
                    names=", ".join(sorted(allowed)),
                ),
            )
        elif _is_reference(value, rule):
            yield name, REFERENCE_NOT_ALLOWED.fill(name=name)
        elif not rule.fits(value):
            yield name, INVALID_VALUE.fill(name=name, form=rule.description)


def _is_reference(value: Any, rule: ValueRule) -> bool:
    """Whether any part would be looked up; stop sequences and secrets may look like a path."""
    if rule.is_address:
        return False
    if isinstance(value, str):
        is_path = FILE_PATH.match(value) and rule is not STOP_SEQUENCES and not rule.is_secret
        return bool(REFERENCE_PATTERN.match(value) or is_path)
    if isinstance(value, Mapping):
        return any(_is_reference(item, rule) for pair in value.items() for item in pair)
    return isinstance(value, list | tuple) and any(_is_reference(item, rule) for item in value)
