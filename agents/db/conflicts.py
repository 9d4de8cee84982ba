"""Repeats a transaction that the database gave up because another one was in its way."""

import logging
import random
import time
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from django.db import connection

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
logger = logging.getLogger(__name__)

# Of PostgreSQL: a deadlock, and transactions that can't be put in an order.
CODES = {"40P01", "40001"}
MAX_TRIES = 3
PAUSE_SECONDS = 0.05


def is_conflict(error: BaseException | None) -> bool:
    while error is not None:
        if getattr(error, "sqlstate", None) in CODES:
            return True
        error = error.__cause__
    return False


def repeated(do: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Repeat a function that is one transaction; as a part of another one, it is not."""

    @wraps(do)
    def wrapped(*args: Parameters.args, **options: Parameters.kwargs) -> Result:
        for number in range(1, MAX_TRIES + 1):
            try:
                return do(*args, **options)
            except Exception as error:
                is_last = number == MAX_TRIES or connection.in_atomic_block
                if is_last or not is_conflict(error):
                    raise
                logger.warning("Repeating %s after a deadlock: %s", do.__qualname__, error)
            time.sleep(random.uniform(0, PAUSE_SECONDS * number))
        raise AssertionError  # the last try returns or raises

    return wrapped
