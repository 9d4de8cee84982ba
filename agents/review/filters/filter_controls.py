"""Controls beside the filter bar. Each one is a link that writes the filter language."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.models import Agent
from agents.models.types import LazyText
from agents.web.presentation.formats.dates import day_text

from .filter_fields import STATUSES
from .filter_language import Filter, Term
from .filter_values import NamePattern

DATE_FIELDS = ("after", "before", "on")
RANGES: dict[str, LazyText] = {
    "": gettext_lazy("Any time"),
    "after:-1h": gettext_lazy("Last hour"),
    "after:-24h": gettext_lazy("Last 24 hours"),
    "on:today": gettext_lazy("Today"),
    "on:yesterday": gettext_lazy("Yesterday"),
    "after:-7d": gettext_lazy("Last 7 days"),
    "after:-30d": gettext_lazy("Last 30 days"),
}
# Terms that one click adds or removes again.
QUICK_FILTERS: dict[str, LazyText] = {
    "status:failed": gettext_lazy("Failed"),
    "status:failed on:yesterday": gettext_lazy("Failed yesterday"),
    "duration:>30s": gettext_lazy("Slow"),
    "rating:down": gettext_lazy("Thumbs down"),
}
IMPORTED_TOO = "source:imported,here"
MAX_AGENTS = 30
ToUrl = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    label: str
    url: str
    is_on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Menu:
    """A menu; its label says what is chosen."""

    name: str
    label: str
    options: Sequence[Option]
    is_used: bool
    first: str = ""  # of a range of days, for its form
    last: str = ""


def date_menu(run_filter: Filter, url: ToUrl) -> Menu:
    terms = _positive_terms(run_filter, DATE_FIELDS)
    text = " ".join(run_filter.source_text(term) for term in terms)
    options = [
        Option(
            label=str(label),
            url=url(run_filter.with_terms(DATE_FIELDS, term)),
            is_on=text == term,
        )
        for term, label in RANGES.items()
    ]
    first, last = _days(text)
    label = next((option.label for option in options if option.is_on), "")
    if not label:
        if first and last:
            days = [day_text(day) for day in dict.fromkeys([first, last])]
            label = " – ".join(days)
        elif first:
            label = _("Since %(day)s") % {"day": day_text(first)}
        else:
            label = _("Until %(day)s") % {"day": day_text(last)} if last else text
    return Menu(
        name="date",
        label=label,
        options=options,
        is_used=bool(terms),
        first=first.isoformat() if first else "",
        last=last.isoformat() if last else "",
    )


def status_menu(run_filter: Filter, url: ToUrl) -> Menu:
    chosen = [
        value for term in _positive_terms(run_filter, ["status"]) for value in term.values
    ]
    options = [
        Option(
            label=str(label),
            url=url(run_filter.with_terms(["status"], _term("status", _toggle(chosen, name)))),
            is_on=name in chosen,
        )
        for name, label in STATUSES.items()
    ]
    return _choice_menu("status", _("Status"), options)


def agent_menu(run_filter: Filter, url: ToUrl) -> Menu:
    chosen = [
        value.text + "*" * value.is_beginning
        for term in _positive_terms(run_filter, ["agent"])
        for value in term.values
        if isinstance(value, NamePattern)
    ]
    names = Agent.objects.filter(enabled=True).order_by("name").values_list("name", flat=True)
    options = [
        Option(
            label=name,
            url=url(run_filter.with_terms(["agent"], _term("agent", _toggle(chosen, name)))),
            is_on=name in chosen,
        )
        for name in dict.fromkeys([*chosen, *names[:MAX_AGENTS]])
    ]
    return _choice_menu("agent", _("Agent"), options)


def quick_filters(run_filter: Filter, url: ToUrl) -> list[Option]:
    """Return the quick filters; the one with the most terms is on."""
    chosen = {run_filter.source_text(term) for term in run_filter.terms}
    term_sets = {query: set(query.split()) for query in QUICK_FILTERS}
    on = {query for query, terms in term_sets.items() if terms <= chosen}
    options = []
    for query, label in QUICK_FILTERS.items():
        terms = term_sets[query]
        is_on = query in on and not any(terms < term_sets[other] for other in on)
        fields = {term.partition(":")[0] for term in terms}
        if "on" in fields:
            fields.update(DATE_FIELDS)
        text = run_filter.with_terms(fields, "" if is_on else query)
        options.append(Option(label=str(label), url=url(text), is_on=is_on))
    return options


def imported_option(run_filter: Filter, url: ToUrl) -> Option:
    """Return the option that lists imported answers, too."""
    is_on = run_filter.has_imported
    fields = ["source", "route"] if is_on else ["source"]
    text = run_filter.with_terms(fields, "" if is_on else IMPORTED_TOO)
    label = _("Hide imported chats") if is_on else _("Include imported chats")
    return Option(label=label, url=url(text), is_on=is_on)


def custom_range(run_filter: Filter, first: str, last: str) -> str | None:
    """Return the filter with a range of days; None if neither is a date."""
    start = _parse_date(first)
    end = _parse_date(last)
    if start and end:
        return run_filter.with_terms(DATE_FIELDS, f"on:{min(start, end)}..{max(start, end)}")
    if start:
        return run_filter.with_terms(DATE_FIELDS, f"after:{start}")
    if end:
        return run_filter.with_terms(DATE_FIELDS, f"before:{end + timedelta(days=1)}")
    return None


def _days(text: str) -> tuple[date | None, date | None]:
    """Return the days that `custom_range` made this text of."""
    field, _colon, days = text.partition(":")
    start, dots, end = days.partition("..")
    first = _parse_date(start)
    last = _parse_date(end) if dots else None
    match field:
        case "on":
            return (first, last or first)
        case "after":
            return (first, None)
        case "before":
            return (None, first and first - timedelta(days=1))
    return (None, None)


def _choice_menu(name: str, title: str, options: Sequence[Option]) -> Menu:
    on = [option.label for option in options if option.is_on]
    label = title if not on else f"{title}: {', '.join(on[:2])}{' …' if len(on) > 2 else ''}"
    return Menu(name=name, label=label, options=options, is_used=bool(on))


def _positive_terms(run_filter: Filter, fields: Iterable[str]) -> list[Term]:
    names = set(fields)
    return [term for term in run_filter.terms if term.field in names and not term.is_not]


def _toggle(chosen: Sequence[str], name: str) -> list[str]:
    if name in chosen:
        return [value for value in chosen if value != name]
    return [*chosen, name]


def _term(field: str, values: Sequence[str]) -> str:
    plain_values = [value.replace('"', "") for value in values]
    quoted = [
        f'"{value}"' if any(sign in value for sign in " ,、\u3000") else value
        for value in plain_values
    ]
    return f"{field}:{','.join(quoted)}" if values else ""


def _parse_date(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if len(text) == 10 else None
    except ValueError:
        return None
