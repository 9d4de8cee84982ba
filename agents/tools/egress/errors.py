"""Why a request was refused or failed."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpcore2
import httpx2

from agents.engine.errors import ToolError
from agents.engine.sentences import Sentence as _


class EgressRefused(ToolError):
    message = _("This URL isn't allowed.")

    advice = _("Check the URL, or ask an administrator to allow it.")


class AddressBlocked(EgressRefused):
    message = _("The host has an address that isn't public.")


class EgressFailed(ToolError):
    message = _("The server sent no usable response.")

    is_passing = True

    def __init__(self, message: str = "", *, was_sent: bool = True) -> None:
        super().__init__(message)
        self.was_sent = was_sent  # so it may have had an effect


class HostNotFound(EgressFailed):
    message = _("The host name has no address.")


class ResponseTooLarge(EgressFailed):
    message = _("The response is too large.")

    is_passing = False


@contextmanager
def translate_errors() -> Iterator[None]:
    """Translate connection errors to the client's, which have the same names."""
    try:
        yield
    except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException) as e:
        raise getattr(httpx2, type(e).__name__)(str(e)) from e
