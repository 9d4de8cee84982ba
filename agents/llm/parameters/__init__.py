"""Allowed parameters per provider, by name and value.

LiteLLM accepts hundreds of parameters. Some change the address or the key, and some values are
looked up in the environment, in files or at metadata services. So everything from a form, a
file or a row is checked here, and again right before each request.
"""

from .addresses import address_problem
from .credentials import (
    DESTINATION_OPTIONS,
    blank_credentials,
    destination,
    resolve_address,
    resolve_key,
)
from .model_names import full_name, name_problem, provider_label, provider_prefix
from .options import allowed_options
from .problems import check, find_problems
from .settings import ModelSettings, SettingNotAllowed

__all__ = [
    "DESTINATION_OPTIONS",
    "ModelSettings",
    "SettingNotAllowed",
    "address_problem",
    "allowed_options",
    "blank_credentials",
    "check",
    "destination",
    "find_problems",
    "full_name",
    "name_problem",
    "provider_label",
    "provider_prefix",
    "resolve_address",
    "resolve_key",
]
