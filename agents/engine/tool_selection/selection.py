"""Decides which of many tools a model is sent, and why; finds the others."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from agents.engine.guardrails.checks import estimate_tokens
from agents.engine.tool import Tool, specification

from . import words
from .index import ToolIndex, ToolText, describe

Why = Literal["pinned", "used", "exact", "search", "earlier"]
# Returns tool names, those closest in meaning to the question first.
RankByMeaning = Callable[[str, Mapping[str, ToolText]], Awaitable[Sequence[str]]]

FIND_TOOLS = "find_tools"
CALL_TOOL = "call_tool"
CONSTANT_TOOLS = (FIND_TOOLS, CALL_TOOL)
MAX_FOUND = 8
MAX_EXACT = 10
MIN_SHARE = 0.5  # of the best score: weaker tools are no reason to change the list of a chat
MIN_SEARCHED = 10  # places that pinned tools can't take
MIN_TOOLS = 8  # fewer are always sent, however long they are
MAX_QUESTION_CHARS = 2_000
MAX_LEFT_OUT = 500  # names in an event
FUSION = 10  # how fast a rank loses its weight when two rankings are merged
MAX_RANKS = 100  # what comes later in a ranking is noise
INDEXED_TOOL_SETS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionLimits:
    """Up to so many tools and tokens of definitions all are sent; above, up to `sent`."""

    tools: int = 30
    tokens: int = 10_000
    sent: int = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class SentTool:
    """A tool that is sent, with the reason and, if it was searched for, its score."""

    name: str
    why: Why
    score: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"name": self.name, "why": self.why}
        if self.score:
            fields["score"] = round(self.score, 4)
        return fields


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSelection:
    """The tools that a run's model is sent, and the names of those left out."""

    sent: tuple[SentTool, ...]
    left_out: tuple[str, ...]

    @property
    def names(self) -> frozenset[str]:
        return frozenset({*CONSTANT_TOOLS, *(tool.name for tool in self.sent)})

    def to_note(self) -> dict[str, Any]:
        return {
            "sent": [tool.to_dict() for tool in self.sent],
            "left_out": list(self.left_out[:MAX_LEFT_OUT]),
            "count": len(self.left_out),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a selection is for: the question, the one before, and tools that must be sent.

    `previous` are the tools of the chat's last run: if they still fit, the same are sent, so
    that the provider's prompt cache stays valid.
    """

    question: str
    earlier: str = ""
    pinned: Collection[str] = ()
    used: Collection[str] = ()
    previous: Collection[str] = ()


class ToolSelector:
    """An agent's policy for sending tools. It has no state, so runs can share it."""

    def __init__(
        self,
        limits: SelectionLimits | None = None,
        *,
        pinned: Collection[str] = (),
        rank_by_meaning: RankByMeaning | None = None,
        success: Callable[[], Mapping[str, float]] | None = None,
        previous: Callable[[], Awaitable[Collection[str]]] | None = None,
    ) -> None:
        """`pinned` tools are always sent; `success` is how often a tool's calls succeed."""
        self.limits = limits or SelectionLimits()
        self.pinned = frozenset(pinned)
        self.rank_by_meaning = rank_by_meaning
        self.success = success or dict
        self.previous = previous

    def applies_to(self, tools: Sequence[Tool]) -> bool:
        """Whether these are too many tools, or too long, to send all of them."""
        if len(tools) > self.limits.tools:
            return True
        if len(tools) <= MIN_TOOLS:
            return False
        return sum(map(count_tokens, tools)) > self.limits.tokens

    async def select(self, tools: Sequence[Tool], situation: Situation) -> ToolSelection:
        """Choose the tools for a question: pinned, used, named in it, then found."""
        candidates = [tool for tool in tools if tool.name not in CONSTANT_TOOLS]
        index = await asyncio.to_thread(index_of, candidates)
        ranked = await self._ranking(index, situation.question, situation.earlier)
        max_tools = max(1, self.limits.sent - len(CONSTANT_TOOLS))
        by_name = {tool.name: tool for tool in candidates}
        reasons: dict[str, Why] = {}
        max_pinned = max(0, max_tools - MIN_SEARCHED)
        for name in [*sorted(self.pinned), *sorted(situation.pinned)]:
            if name in by_name and len(reasons) < max_pinned:
                reasons.setdefault(name, "pinned")
        for name in sorted(situation.used):
            if name in by_name and len(reasons) < max_tools:
                reasons.setdefault(name, "used")
        for name in mentioned(situation.question, index):
            if len(reasons) < max_tools:
                reasons.setdefault(name, "exact")
        tokens_left = self.limits.tokens - sum(count_tokens(by_name[name]) for name in reasons)
        for name in ranked:
            if len(reasons) >= max_tools:
                break
            if name in reasons:
                continue
            tokens = count_tokens(by_name[name])
            if tokens <= tokens_left or len(reasons) < MIN_TOOLS:
                reasons[name] = "search"
                tokens_left -= tokens
        chosen = [
            SentTool(name=name, why=why, score=ranked.get(name, 0.0))
            for name, why in reasons.items()
        ]
        chosen = self._still_fitting(chosen, index, situation) or chosen
        chosen_names = {tool.name for tool in chosen}
        left_out = tuple(sorted(name for name in index.names if name not in chosen_names))
        return ToolSelection(
            sent=tuple(sorted(chosen, key=lambda tool: tool.name)), left_out=left_out
        )

    async def search(
        self, tools: Sequence[Tool], query: str, limit: int = MAX_FOUND
    ) -> list[Tool]:
        """Return the tools that fit a query best, those it names first."""
        by_name = {tool.name: tool for tool in tools if tool.name not in CONSTANT_TOOLS}
        index = await asyncio.to_thread(index_of, list(by_name.values()))
        ranked = await self._ranking(index, query)
        names = dict.fromkeys([*mentioned(query, index), *ranked])
        return [by_name[name] for name in [*names][:limit]]

    async def _ranking(
        self, index: ToolIndex, question: str, earlier: str = ""
    ) -> dict[str, float]:
        """Return tools with their scores, best first: by words and, if possible, by meaning."""
        question = question[:MAX_QUESTION_CHARS]
        scores = index.scores(question, earlier[:MAX_QUESTION_CHARS], self.success())
        by_words = sorted(scores, key=lambda name: (-scores[name], name))
        if self.rank_by_meaning is not None:
            by_meaning = await self.rank_by_meaning(question, index.texts)
            if by_meaning:
                return fuse(by_words, by_meaning)
        return {name: scores[name] for name in by_words}

    def _still_fitting(
        self, chosen: Sequence[SentTool], index: ToolIndex, situation: Situation
    ) -> list[SentTool]:
        """Return the previous tools if they have everything that matters now."""
        previous_names = [name for name in situation.previous if name in index.texts]
        best = sorted((tool for tool in chosen if tool.why == "search"), key=lambda t: -t.score)
        needed = {tool.name for tool in chosen if tool.why != "search"}
        min_score = best[0].score * MIN_SHARE if best else 0.0
        needed |= {tool.name for tool in best[:MAX_FOUND] if tool.score >= min_score}
        max_tools = self.limits.sent - len(CONSTANT_TOOLS)
        if (
            not previous_names
            or len(previous_names) > max_tools
            or not needed <= set(previous_names)
        ):
            return []
        chosen_by_name = {tool.name: tool for tool in chosen}
        return [
            chosen_by_name.get(name, SentTool(name=name, why="earlier"))
            for name in previous_names
        ]


def fuse(*rankings: Sequence[str]) -> dict[str, float]:
    """Merge rankings by reciprocal rank; being at the top of one is enough."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, name in enumerate(ranking[:MAX_RANKS]):
            scores[name] = scores.get(name, 0.0) + 1 / (FUSION + rank)
    return dict(sorted(scores.items(), key=lambda item: (-item[1], item[0])))


def index_of(tools: Iterable[Tool]) -> ToolIndex:
    """Return the index of these tools; the same set is indexed once."""
    return _index(tuple((tool.name, describe(tool)) for tool in tools))


@lru_cache(maxsize=INDEXED_TOOL_SETS)
def _index(texts: tuple[tuple[str, ToolText], ...]) -> ToolIndex:
    return ToolIndex(dict(texts))


def mentioned(question: str, index: ToolIndex) -> list[str]:
    """Return the tools that a question names, written in any way: send_mail, sendMail."""
    plain = f" {' '.join(words.runs(words.plain(question)))} "
    lengths = {
        name: max((len(form) for form in forms if form in plain), default=0)
        for name, forms in index.spoken_names.items()
    }
    names = sorted((name for name in lengths if lengths[name]), key=lambda n: (-lengths[n], n))
    return names[:MAX_EXACT]


def count_tokens(tool: Tool) -> int:
    """Estimate the tokens of a tool's definition."""
    return estimate_tokens(json.dumps(specification(tool), ensure_ascii=False, default=str))
