"""Where else to look, when a request has found nothing."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import date

from . import dimension as dimensions
from . import filters
from . import period as periods
from .brief import Brief
from .naming import of_request
from .period import Period
from .request import Request

YEARS = 3


def standing(
    request: Request, others: Iterator[Request], brief: Brief, taken: Collection[str] = ()
) -> Request | None:
    """The request, or the nearest to it that was not in vain; `taken` are names in use."""
    for option in (request, *others):
        name = of_request(option, brief.question)
        if name not in taken and not brief.is_in_vain(name):
            return option
    return None


def wider(request: Request) -> Iterator[Request]:
    """The same with less that it is held to: nearly the name, and then any time."""
    yield from _nearly(request)
    if request.period and request.date:
        yield _at_any_time(request)
        yield from map(_at_any_time, _nearly(request))


def elsewhen(request: Request, today: date) -> Iterator[Request]:
    """The same in other periods, for something to compare with."""
    near = [request, *_nearly(request)]
    yield from near[1:]
    others = list(_other_periods(request.period, today)) if request.period else []
    yield from (replace(one, period=period) for one in near for period in others)


def _nearly(request: Request) -> Iterator[Request]:
    if any(condition.name for condition in request.filters):
        nearest = (
            filters.nearest(one.name, request.schema, request.base) if one.name else one
            for one in request.filters
        )
        yield replace(request, filters=tuple(nearest))


def _at_any_time(request: Request) -> Request:
    """A single figure becomes one for each year: so it is seen when there was anything."""
    years = dimensions.of_time("year") if request.is_one_value else request.dimension
    return replace(request, period=None, dimension=years)


def _other_periods(period: Period, today: date) -> Iterator[Period]:
    """As long as this one, back from now."""
    for ago in range(YEARS):
        if (period.end - period.start).days > 31:
            yield periods.year(today.year - ago)
        else:
            yield periods.month(today.year, today.month - ago)
