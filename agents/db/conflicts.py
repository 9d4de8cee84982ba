"""Retries a transaction that the database aborted because of a conflict with another one."""

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


def retry_on_conflict(do: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Retry a function that is one transaction, unless it is called inside another one."""

    @wraps(do)
    def wrapped(*args: Parameters.args, **options: Parameters.kwargs) -> Result:
        for number in range(1, MAX_TRIES + 1):
            try:
                return do(*args, **options)
            except Exception as error:
                is_last = number == MAX_TRIES or connection.in_atomic_block
                if is_last or not is_conflict(error):
                    raise
                logger.warning("Retrying %s after a conflict: %s", do.__qualname__, error)
            time.sleep(random.uniform(0, PAUSE_SECONDS * number))
        raise AssertionError  # the last try returns or raises

    return wrapped
