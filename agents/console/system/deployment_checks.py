"""Django's deployment checks, in our own words."""

import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks
from django.utils.translation import gettext as _

from agents.runs.observability import process_status

LOOPBACK = {"127.0.0.1", "localhost", "::1"}
PACKAGES = {
    "Django": "Django",
    "Channels": "channels",
    "Daphne": "daphne",
    "LiteLLM": "litellm",
    "FastMCP": "fastmcp",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckWarning:
    """A check's warning; one that doesn't apply here says why and has no advice."""

    name: str
    words: str
    advice: str = ""


def deploy_warnings() -> list[CheckWarning]:
    """Return the warnings, those that need attention first."""
    return sorted(
        map(_explain_check, _run_checks()), key=lambda remark: (not remark.advice, remark.name)
    )


def versions() -> Iterator[tuple[str, str]]:
    """Yield the versions of the product and its main dependencies."""
    yield "Ashiato", process_status.version()
    yield "Python", platform.python_version()
    for name, package in PACKAGES.items():
        yield name, metadata.version(package)


@cache
def _run_checks() -> list[checks.CheckMessage]:
    """Run the checks once, because settings don't change in a process."""
    results = checks.run_checks(include_deployment_checks=True)
    return [message for message in results if not message.is_silenced()]


def _explain_check(message: checks.CheckMessage) -> CheckWarning:
    name = message.id or ""
    if name in PLAIN_HTTP_CHECKS:
        # One warning for insecure cookies and missing HSTS, reported by three checks.
        if all(urlsplit(origin).hostname in LOOPBACK for origin in settings.ORIGINS):
            sentence = _("Only this machine can connect, so plain HTTP is safe.")
            return CheckWarning(name=name, words=sentence)
        return CheckWarning(
            name=name,
            words=_(
                "Pages are served over plain HTTP. Anyone on the network path can read them."
            ),
            advice=_(
                "Put a load balancer with TLS in front, and set ASHIATO_ORIGINS to https://…."
            ),
        )
    if name in NOT_APPLICABLE:
        return CheckWarning(name=name, words=NOT_APPLICABLE[name]())
    if name in REWORDED_CHECKS:
        make_sentence, make_advice = REWORDED_CHECKS[name]
        return CheckWarning(name=name, words=make_sentence(), advice=make_advice())
    advice = message.hint or _("See Django's system check documentation.")
    return CheckWarning(name=name, words=str(message.msg), advice=str(advice))


MessageFactory = Callable[[], str]
PLAIN_HTTP_CHECKS = {"security.W004", "security.W012", "security.W016"}
NOT_APPLICABLE: dict[str, MessageFactory] = {
    "security.W005": lambda: _("Requiring HTTPS for subdomains is up to the domain owner."),
    "security.W008": lambda: _("The load balancer redirects HTTP to HTTPS."),
    "security.W021": lambda: _("HSTS preloading is up to the domain owner."),
}
REWORDED_CHECKS: dict[str, tuple[MessageFactory, MessageFactory]] = {
    "security.W009": (
        lambda: _("The secret key is too short or easy to guess."),
        lambda: _("Set ASHIATO_SECRET_KEY to at least 50 random characters."),
    ),
    "security.W018": (
        lambda: _("Error pages reveal internal details of this server."),
        lambda: _("Set ASHIATO_DEBUG to false."),
    ),
}
