"""Tables of which `make test` takes a sample."""

from collections.abc import Iterable
from typing import Any

import pytest


def one_in(count: int, values: Iterable[Any]) -> list[Any]:
    """Return parameters of which `make test` runs one in `count`, and `make test-all` all."""
    return [
        value if at % count == 0 else _only_thorough(value) for at, value in enumerate(values)
    ]


def _only_thorough(value: Any) -> Any:
    each = value if isinstance(value, tuple) else (value,)
    return pytest.param(*each, marks=pytest.mark.thorough)
