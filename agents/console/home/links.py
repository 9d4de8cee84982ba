"""Links from figures to the runs behind them."""

from urllib.parse import urlencode

from django.urls import reverse
from django.utils import timezone

from .figures import Period


def runs_url(period: Period, *terms: str, sort: str = "") -> str:
    """Return the list of the period's runs that match these terms of its filter.

    With the exact time, because the list's days are those of its reader's time zone.
    """
    after = f"after:{period.start(timezone.now()).isoformat(timespec='seconds')}"
    asked = {"q": " ".join([*terms, after])} | ({"sort": sort} if sort else {})
    return f"{reverse('trace:list')}?{urlencode(asked)}"


def term(field: str, value: str) -> str:
    """Return a term of the filter, quoted if needed."""
    return f'{field}:"{value}"' if " " in value else f"{field}:{value}"
