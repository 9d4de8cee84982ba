"""How long it takes to choose the tools that a model is sent."""

import asyncio
import time
from statistics import median

from agents.engine import ReActPlanner
from agents.engine.state import AgentState
from agents.engine.testing import ScriptedModel
from agents.engine.tool_selection import Situation, ToolSelector, evaluation
from agents.engine.tool_selection.selection import index_of
from tests.bench.rounds import Size

ABOUT = """\
Tools: selection for a question, by words alone, among so many tools. × is its ratio to
building one request with all of them. “Index” is built once per set of tools. The bound is
20 ms."""
QUESTIONS = 60


def measure(size: Size) -> list[dict]:
    tools = evaluation.read_tools()
    return [_row(tools[:count]) for count in (30, 100, len(tools))]


def _row(tools: list) -> dict:
    began = time.perf_counter()
    index_of(tools)
    indexed = time.perf_counter() - began
    chosen = median(asyncio.run(_selections(tools)))
    planner = ReActPlanner(ScriptedModel(), "scripted", window=200_000)
    built = median(_timed(lambda: planner.request("?", AgentState(), tools)) for _ in range(20))
    return {
        "tools": len(tools),
        "index ms": round(1000 * indexed, 1),
        "selection ms": round(1000 * chosen, 2),
        "request ms": round(1000 * built, 2),
        "×": round(chosen / built, 1),
    }


async def _selections(tools: list) -> list[float]:
    found = []
    questions = evaluation.read_questions()
    for question in questions[:: len(questions) // QUESTIONS]:
        began = time.perf_counter()
        await ToolSelector().select(tools, Situation(question=question.text))
        found.append(time.perf_counter() - began)
    return found


def _timed(work) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
