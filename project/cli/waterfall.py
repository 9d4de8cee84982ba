"""A run in a terminal: a line per step, with when it ran, its tokens and its cost."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from unicodedata import east_asian_width

from agents.management.escapes import escape_line
from agents.management.run_printer import DIM, RESET

Values = Mapping[str, Any]

LABEL_CELLS = 34
MIN_BAR_CELLS = 10
MAX_BAR_CELLS = 60
FIGURES_CELLS = 30
BAR, TRACK = "━", "·"
FAILED_STATUSES = {"failed", "error", "blocked", "rejected", "interrupted"}


def draw(run: Values, steps: Sequence[Values], width: int, *, has_color: bool) -> Iterator[str]:
    """Yield the lines of a run and its steps."""
    yield _summary(run)
    yield escape_line(run["question"])
    if not steps:
        return
    steps = list(_in_tree_order(steps))
    begin = min(_seconds(step["started_at"]) for step in steps)
    times = [_span(step, begin) for step in steps]
    total = max([end for _start, end in times] + [0.001])
    cells = min(MAX_BAR_CELLS, max(MIN_BAR_CELLS, width - LABEL_CELLS - FIGURES_CELLS))
    yield ""
    for step, (start, end) in zip(steps, times, strict=True):
        bar = _bar(start / total, end / total, cells)
        line = f"{_label(step)} {bar} {_figures(step, end - start)}".rstrip()
        is_minor = has_color and step["kind"] in {"guardrail", "budget"}
        yield f"{DIM}{line}{RESET}" if is_minor else line
    if detail := run.get("detail"):
        yield ""
        yield escape_line(detail)


def _in_tree_order(steps: Sequence[Values]) -> Iterator[Values]:
    """Yield each step before those that belong to it."""
    numbers = {step["number"] for step in steps}
    children: dict[int | None, list[Values]] = defaultdict(list)
    for step in steps:
        parent = step.get("parent")
        children[parent if parent in numbers else None].append(step)
    pending = children[None][::-1]
    while pending:
        step = pending.pop()
        yield step
        pending += children[step["number"]][::-1]


def _summary(run: Values) -> str:
    usage = run["usage"]
    facts = [
        f"Run {run['id']}",
        escape_line(run["agent"]),
        run["status"],
        format_seconds(run["seconds"]) if run.get("seconds") is not None else "",
        f"{usage['prompt_tokens'] + usage['completion_tokens']:,} tokens",
        format_cost(usage.get("cost_usd")),
    ]
    return " · ".join(filter(None, facts))


def _span(step: Values, begin: float) -> tuple[float, float]:
    start = max(0.0, _seconds(step["started_at"]) - begin)
    ended_at = step.get("ended_at")
    return start, max(start, _seconds(ended_at) - begin) if ended_at else start


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def _label(step: Values) -> str:
    indent = "  " * min(step["depth"], 5)
    name = step["action"] or ""
    mark = "✗ " if step["status"] in FAILED_STATUSES else ""
    text = f"{step['number']:>3} {indent}{mark}{step['kind']} {escape_line(name)}".rstrip()
    return fit(text, LABEL_CELLS)


def _bar(start: float, end: float, cells: int) -> str:
    first = min(cells - 1, round(start * cells))
    length = min(cells - first, max(1, round((end - start) * cells)))
    return TRACK * first + BAR * length + TRACK * (cells - first - length)


def _figures(step: Values, seconds: float) -> str:
    usage = step["usage"]
    tokens = usage["prompt_tokens"] + usage["completion_tokens"]
    duration = format_seconds(seconds) if step.get("ended_at") else "…"
    counted = f"{tokens:,} tok" if tokens else ""
    return f"{duration:>8} {counted:>11} {format_cost(usage.get('cost_usd')):>9}"


def format_seconds(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def format_cost(cost: float | None) -> str:
    return "" if not cost else f"${cost:.4f}"


def fit(text: str, cells: int) -> str:
    """Cut or fill a text to this many cells of a terminal."""
    used = 0
    kept = ""
    for char in text:
        size = 2 if east_asian_width(char) in "WF" else 1
        if used + size > cells:
            # The last character gives way to the ellipsis.
            while kept and used + 1 > cells:
                used -= 2 if east_asian_width(kept[-1]) in "WF" else 1
                kept = kept[:-1]
            kept += "…"
            used += 1
            break
        kept += char
        used += size
    return kept + " " * (cells - used)
