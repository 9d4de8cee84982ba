"""No assertion is an upper bound of wall time, which on a busy machine says nothing.

Count calls, steps or bytes, measure CPU time, or wait for a state with a generous timeout.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CLOCKS = {"monotonic", "perf_counter", "time"}
# The bench measures, and the rows of the faults hold what the product promises in seconds.
MEASURING = {"bench", "faults"}


def timed_assertions(source: str) -> list[int]:
    """Return the lines with assertions of the form `seconds < limit`."""
    tree = ast.parse(source)
    functions = [
        n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    timers = {f.name for f in functions if any(_is_timed(r) for r in _returned(f))}
    return sorted({line for function in functions for line in _bounds(function, timers)})


def _returned(function: ast.AST) -> list[ast.expr]:
    return [n.value for n in ast.walk(function) if isinstance(n, ast.Return) and n.value]


def _bounds(function: ast.AST, timers: set[str]) -> Iterator[int]:
    assigned = [n for n in ast.walk(function) if isinstance(n, ast.Assign | ast.AnnAssign)]
    values = [
        (n.targets if isinstance(n, ast.Assign) else [n.target], n.value) for n in assigned
    ]
    names = {
        target.id
        for targets, value in values
        for target in targets
        if isinstance(target, ast.Name) and value and _is_timed(value, timers)
    }
    for assertion in (n for n in ast.walk(function) if isinstance(n, ast.Assert)):
        for compare in (n for n in ast.walk(assertion) if isinstance(n, ast.Compare)):
            terms = [compare.left, *compare.comparators]
            for smaller, operator, larger in zip(terms, compare.ops, terms[1:], strict=False):
                is_reversed = isinstance(operator, ast.Gt | ast.GtE)
                bounded = larger if is_reversed else smaller
                is_bound = is_reversed or isinstance(operator, ast.Lt | ast.LtE)
                if is_bound and _is_timed(bounded, timers, names):
                    yield assertion.lineno


def _is_timed(
    value: ast.expr, timers: set[str] = frozenset(), names: set[str] = frozenset()
) -> bool:
    """Whether a value is a difference of wall times, or was assigned or returned as one."""
    return any(
        (isinstance(n, ast.Name) and n.id in names)
        or (isinstance(n, ast.Call) and _name(n.func) in timers)
        or (isinstance(n, ast.BinOp) and isinstance(n.op, ast.Sub) and _reads_clock(n.left))
        for n in ast.walk(value)
    )


def _reads_clock(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and _name(value.func) in CLOCKS


def _name(function: ast.expr) -> str:
    return getattr(function, "attr", getattr(function, "id", ""))


def test_no_assertion_is_an_upper_bound_of_wall_time():
    sources = {path.relative_to(TESTS): path.read_text() for path in TESTS.rglob("*.py")}
    timed = {
        f"{path}:{line}"
        for path, source in sources.items()
        if path.parts[0] not in MEASURING and any(f"{clock}()" in source for clock in CLOCKS)
        for line in timed_assertions(source)
    }

    assert timed == set()


TIMED = [
    "assert time.monotonic() - began < 5",
    "assert 1 < perf_counter() - began < 5",
    "assert 5 > loop().time() - began",
    "took = monotonic() - began\n assert took < 5",
    "took = seconds()\n assert took <= 5",
]
OTHERS = [
    "assert monotonic() - began > 5",
    "took = process_time() - began\n assert took < 5",
    "assert monotonic() < deadline",
]


@pytest.mark.parametrize(("bodies", "count"), [(TIMED, 1), (OTHERS, 0)])
def test_an_upper_bound_of_wall_time_is_recognized_also_if_it_was_saved_first(bodies, count):
    helper = "def seconds():\n return monotonic() - began\n"
    results = {body: len(timed_assertions(f"{helper}def test():\n {body}")) for body in bodies}

    assert results == dict.fromkeys(bodies, count)
