"""Draws a plan: steps in columns after their dependencies, with their status.

Where there is no room for columns, all steps are in one, and the lines pass on its sides.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from unicodedata import east_asian_width

from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.engine.plans import (
    ALWAYS,
    FAILURE,
    SUCCESS,
    ExecutionPlan,
    ExecutionStep,
    dependencies,
    levels,
    precedence,
)
from agents.models import AgentStep

MAX_NODES = 150
MAX_BARS = 60
NODE_WIDTH = 232
NODE_HEIGHT = 54
LEVEL_GAP = 44
ROW_GAP = 16
MARGIN = 3
SIDE_MARGIN = 24
NARROW_WIDTH = 640
BAR_PITCH = 10
BARS_HEIGHT = 120
NAME_CHARS = 24
DETAIL_CHARS = 32
PENDING = "pending"
# Finished steps come first in a bar, as they did in time.
STATUS_RANKS = {status: i for i, status in enumerate([PENDING, *AgentStep.Status.values])}

StepHref = Callable[[ExecutionStep, "StepState"], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepState:
    """A step's status; `number` is its row in the run, `note` a few words."""

    status: str = PENDING
    number: int | None = None
    note: str = ""

    @property
    def label(self) -> str:
        is_known = self.status in AgentStep.Status.values
        return str(AgentStep.Status(self.status).label) if is_known else _("not started")


def render_graph(
    plan: ExecutionPlan, states: Mapping[str, StepState], href: StepHref, *, label: str = ""
) -> SafeString:
    """Render the graph; with many steps, columns become bars of counts by status."""
    columns = levels(plan.steps)
    step_states = {step.name: states.get(step.name, StepState()) for step in plan.steps}
    context = {"label": label or _("Plan"), "count": len(plan.steps), "is_empty": not columns}
    if len(plan.steps) > MAX_NODES:
        bars = list(_bars(columns, step_states, href))
        box = f"0 0 {len(bars) * BAR_PITCH} {BARS_HEIGHT}"
        return render_to_string("run/_graph_bars.html", {**context, "bars": bars, "box": box})
    rows = _order_columns(columns)
    drawings = [_layout(plan, rows, step_states, href, is_wide=wide) for wide in (True, False)]
    return render_to_string("run/_graph.html", {**context, "drawings": drawings})


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """A step with its position and text."""

    x: int
    y: int
    step: ExecutionStep
    state: StepState
    href: str

    width = NODE_WIDTH
    height = NODE_HEIGHT

    @property
    def icon(self) -> str:
        return ICONS[self.step.kind]

    @property
    def name(self) -> str:
        return shorten_middle(self.step.name, NAME_CHARS)

    @property
    def about(self) -> str:
        return shorten_end(self.state.note or _step_detail(self.step), DETAIL_CHARS)

    @property
    def is_loop(self) -> bool:
        return self.step.for_each is not None or bool(self.step.until)

    @property
    def is_conditional(self) -> bool:
        is_first = self.step.condition == ALWAYS and not dependencies(self.step)
        return self.step.condition != SUCCESS and not is_first

    @property
    def is_nested(self) -> bool:
        return self.step.plan is not None

    @property
    def sentence(self) -> str:
        """The full description, for screen readers and the tooltip."""
        step = self.step
        phrases = [f"{step.name}: {self.state.label}", _step_detail(step)]
        if self.state.note:
            phrases.append(self.state.note)
        if self.is_conditional:
            phrases.append(_("condition: %(words)s") % {"words": step.condition})
        if step.for_each is not None:
            items = shorten_end(str(step.for_each), 80)
            phrases.append(_("for each: %(words)s") % {"words": items})
        if step.until:
            phrases.append(_("until: %(words)s") % {"words": step.until})
        return " · ".join(phrases)


ICONS = {"tool": "tool", "agent": "answer", "ask": "waiting", "plan": "trace"}


@dataclass(frozen=True, slots=True)
class Edge:
    line: str
    head: str
    is_for_failure: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphLayout:
    is_wide: bool
    width: int
    height: int
    nodes: list[GraphNode]
    edges: list[Edge]

    @property
    def is_short(self) -> bool:
        """Whether it fits next to something else."""
        return self.width <= NARROW_WIDTH


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusSegment:
    """The steps of a bar with the same status."""

    status: str
    y: str
    height: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusBar:
    x: int
    href: str
    sentence: str
    pieces: list[StatusSegment]

    width = BAR_PITCH - 2


def shorten_end(text: str, max_width: int) -> str:
    """Cut text to a width in which a Japanese character counts as two."""
    remaining = max_width
    for index, character in enumerate(text):
        remaining -= 2 if east_asian_width(character) in "WF" else 1
        if remaining < 0:
            return text[: max(index - 1, 1)] + "…"
    return text


def shorten_middle(text: str, max_width: int) -> str:
    """Cut text in the middle, because the end often distinguishes two steps."""
    if shorten_end(text, max_width) == text:
        return text
    end = shorten_end(text[::-1], max_width // 2).removesuffix("…")
    return shorten_end(text, max_width - max_width // 2) + end[::-1]


def _step_detail(step: ExecutionStep) -> str:
    if step.plan is not None:
        count = len(step.plan.steps)
        return ngettext("%(count)d step", "%(count)d steps", count) % {"count": count}
    if step.ask:
        request = _("approval") if step.approves else _("question")
        return f"{request} · {step.role}" if step.role else request
    return step.agent or step.tool or step.role


def _order_columns(columns: Sequence[Sequence[ExecutionStep]]) -> list[list[ExecutionStep]]:
    """Sort each column by the mean row of its dependencies, so that few lines cross."""
    row_by_name: dict[str, float] = {}
    ordered = []
    for column in columns:
        mean_rows: dict[str, float] = {}
        for index, step in enumerate(column):
            rows = [row_by_name[name] for name in dependencies(step) if name in row_by_name]
            mean_rows[step.name] = sum(rows) / len(rows) if rows else index
        ordered_column = sorted(column, key=lambda step: mean_rows[step.name])
        row_by_name |= {step.name: index for index, step in enumerate(ordered_column)}
        ordered.append(ordered_column)
    return ordered


def _layout(
    plan: ExecutionPlan,
    rows: list[list[ExecutionStep]],
    states: Mapping[str, StepState],
    href: StepHref,
    *,
    is_wide: bool,
) -> GraphLayout:
    nodes = []
    for step, x, y in _place_columns(rows) if is_wide else _place_stacked(rows):
        state = states[step.name]
        nodes.append(GraphNode(x=x, y=y, step=step, state=state, href=href(step, state)))
    side_margin = MARGIN if is_wide else MARGIN + SIDE_MARGIN
    return GraphLayout(
        is_wide=is_wide,
        width=max((node.x for node in nodes), default=0) + NODE_WIDTH + side_margin,
        height=max((node.y for node in nodes), default=0) + NODE_HEIGHT + MARGIN,
        nodes=nodes,
        edges=list(_edges(plan, rows, nodes, is_wide)),
    )


def _place_columns(rows: list[list[ExecutionStep]]) -> Iterator[tuple[ExecutionStep, int, int]]:
    max_rows = max(map(len, rows), default=0)
    for level, column in enumerate(rows):
        for index, step in enumerate(column):
            across = index + (max_rows - len(column)) / 2
            x = level * (NODE_WIDTH + LEVEL_GAP)
            y = round(across * (NODE_HEIGHT + ROW_GAP))
            yield step, x + MARGIN, y + MARGIN


def _place_stacked(rows: list[list[ExecutionStep]]) -> Iterator[tuple[ExecutionStep, int, int]]:
    """Place steps below one another; parallel ones are closer together."""
    y = MARGIN
    for column in rows:
        for step in column:
            yield step, MARGIN + SIDE_MARGIN, y
            y += NODE_HEIGHT + ROW_GAP
        y += LEVEL_GAP - ROW_GAP


def _edges(
    plan: ExecutionPlan, rows: list[list[ExecutionStep]], nodes: list[GraphNode], is_wide: bool
) -> Iterator[Edge]:
    by_name = {node.step.name: node for node in nodes}
    level_by_name = {step.name: index for index, column in enumerate(rows) for step in column}
    lowest = {column[-1].name for column in rows}
    is_before = precedence(plan.steps)
    for node in nodes:
        own_level = level_by_name[node.step.name]
        # Steps in a cycle share a column, so a line between them would lead back.
        earlier_names = [
            name
            for name in dependencies(node.step)
            if level_by_name.get(name, own_level) < own_level
        ]
        for name in earlier_names:
            # An indirect dependency needs no line of its own.
            if any(is_before(name, later_name) for later_name in earlier_names):
                continue
            start = by_name[name]
            if is_wide:
                line, head = _horizontal_path(start, node)
            else:
                line, head = _vertical_path(start, node, name in lowest)
            yield Edge(line, head, is_for_failure=node.step.condition == FAILURE)


def _horizontal_path(start: GraphNode, end: GraphNode) -> tuple[str, str]:
    x1 = start.x + NODE_WIDTH
    y1 = start.y + NODE_HEIGHT // 2
    x2 = end.x - 1
    y2 = end.y + NODE_HEIGHT // 2
    bend = LEVEL_GAP // 2
    line = f"M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2 - 5} {y2}"
    return line, f"M{x2} {y2}l-7 -4v8Z"


def _vertical_path(start: GraphNode, end: GraphNode, is_lowest: bool) -> tuple[str, str]:
    """Return a straight line to the next step, or one that passes others on a side."""
    if end.y - start.y == NODE_HEIGHT + LEVEL_GAP:
        x = start.x + NODE_WIDTH // 2
        y = end.y - 1
        return f"M{x} {start.y + NODE_HEIGHT}V{y - 5}", f"M{x} {y}l-4 -7h8Z"
    x = start.x if is_lowest else start.x + NODE_WIDTH
    side = -1 if is_lowest else 1
    y1 = start.y + NODE_HEIGHT // 2 + 8
    y2 = end.y + NODE_HEIGHT // 2 - 8
    bend = x + side * (SIDE_MARGIN + 6)
    tip = x + side
    line = f"M{x} {y1}C{bend} {y1} {bend} {y2} {tip + side * 5} {y2}"
    return line, f"M{tip} {y2}l{side * 7} -4v8Z"


def _bars(
    columns: Sequence[Sequence[ExecutionStep]], states: Mapping[str, StepState], href: StepHref
) -> Iterator[StatusBar]:
    """Group neighboring columns into bars, if there are too many to tell apart."""
    size = ceil(len(columns) / MAX_BARS)
    groups = [
        [step for column in columns[start : start + size] for step in column]
        for start in range(0, len(columns), size)
    ]
    max_count = max(map(len, groups))
    first = 1
    for index, group in enumerate(groups):
        counts = Counter(states[step.name].status for step in group)
        pieces = []
        y = float(BARS_HEIGHT)
        for status in sorted(counts, key=lambda s: STATUS_RANKS.get(s, 0), reverse=True):
            height = counts[status] / max_count * BARS_HEIGHT
            y -= height
            pieces.append(StatusSegment(status=status, y=f"{y:.2f}", height=f"{height:.2f}"))
        labels = [
            f"{StepState(status=status).label} {count}"
            for status, count in counts.most_common()
        ]
        last = first + len(group) - 1
        params = {"first": first, "last": last, "parts": ", ".join(labels)}
        open_step = next((s for s in group if states[s.name].status != "done"), group[0])
        yield StatusBar(
            x=index * BAR_PITCH + 1,
            href=href(open_step, states[open_step.name]),
            sentence=_("Steps %(first)d–%(last)d: %(parts)s") % params,
            pieces=pieces,
        )
        first = last + 1
