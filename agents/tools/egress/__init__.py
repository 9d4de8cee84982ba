"""Outgoing requests to addresses that a user, a model or a row can choose.

A name is resolved once, all its addresses are checked, and the connection goes to one of them,
so a later change of the name has no effect. Time, headers and the unpacked size of a response
are limited.
"""

from .body import Response
from .errors import (
    AddressBlocked,
    EgressFailed,
    EgressRefused,
    HostNotFound,
    ResponseTooLarge,
)
from .policy import Egress, resolve_in_own_loop, validate_url
from .requests import fetch
from .transport import create_client, warm_up

__all__ = [
    "AddressBlocked",
    "Egress",
    "EgressFailed",
    "EgressRefused",
    "HostNotFound",
    "Response",
    "ResponseTooLarge",
    "create_client",
    "fetch",
    "resolve_in_own_loop",
    "validate_url",
    "warm_up",
]
