"""Links from figures to the runs behind them."""

from urllib.parse import urlencode

from django.urls import reverse

from .figures import Period


def runs_url(period: Period, *terms: str, sort: str = "") -> str:
    """Return the list of the period's runs that match these terms of its filter."""
    asked = {"q": " ".join([*terms, f"after:{period.filter}"])} | (
        {"sort": sort} if sort else {}
    )
    return f"{reverse('trace:list')}?{urlencode(asked)}"


def term(field: str, value: str) -> str:
    """Return a term of the filter, quoted if needed."""
    return f'{field}:"{value}"' if " " in value else f"{field}:{value}"
