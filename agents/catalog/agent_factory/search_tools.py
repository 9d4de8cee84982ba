"""Gives an agent's search tools what they can read in a run, and says so to its model."""

import time
from collections.abc import Callable, Sequence
from functools import partial

from agents.engine.privacy import Pseudonymizer
from agents.engine.sentences import Sentence as _
from agents.engine.tool import Tool
from agents.knowledge.scope import Scope
from agents.models import Agent, Run
from agents.models.sharing.collections import PROJECT_TOPIC_PREFIX
from agents.tools.read_document import ReadDocumentTool
from agents.tools.search import SearchTool

from ..language_models import reranking
from ..language_models.reranking import NoReranker
from ..tools.search_library import ScopedLibrary, announcement, topic_collections
from .personal_data import pseudonymizer_for
from .relations import search_scope

# How long an announcement is used again. It only tells a model where to look: what a search
# can read is decided when it runs.
ANNOUNCED_SECONDS = 15.0
MAX_ANNOUNCED = 2_000
# Passages aren't pseudonymized for the model that re-ranks them.
HIDES_PERSONAL_DATA = _("This agent masks personal data sent to models.")
ANNOUNCED: dict[tuple[int | None, int], tuple[float, str]] = {}


def bind(run: Run, agent: Agent, model: str, tools: Sequence[Tool]) -> tuple[list[Tool], str]:
    """Return the tools with their scope, and the part of the instructions that announces it.

    Where a search is uncertain, the agent's model is asked, unless another one is chosen for
    it. Without a search tool, an agent can still search the files of its chat and project.
    """
    has_search = any(isinstance(tool, SearchTool) for tool in tools)
    own_files = _own_files(run)
    if not has_search and not own_files:
        return list(tools), ""
    load_scope: Callable[[], Scope] = partial(search_scope, run, agent, _project_topics(run))
    # What an administrator chose for the search tool, if anything.
    chosen = frozenset[int]().union(
        *(tool.collections for tool in tools if isinstance(tool, SearchTool))
    )
    if not has_search:
        load_scope = partial(_own_files, run)
    elif chosen:
        everything = load_scope
        allowed = chosen | own_files.collections

        def load_scope() -> Scope:
            return everything().limited_to(allowed)

    library = ScopedLibrary(load_scope)
    bound = list(tools)
    if not has_search:
        bound = [tool for tool in tools if not isinstance(tool, ReadDocumentTool)]
        bound += [SearchTool(library), ReadDocumentTool(library)]
    for tool in bound:
        if isinstance(tool, SearchTool):
            tool.search = library
            masks = pseudonymizer_for(run, agent, Pseudonymizer())
            if tool.reranker and masks:
                tool.reranker = NoReranker(why=HIDES_PERSONAL_DATA)
            elif tool.is_reranked and not tool.reranker and not masks:
                tool.reranker = reranking.by_own_model(model)
        elif isinstance(tool, ReadDocumentTool):
            tool.library = library
    if own_files or run.is_draft_run:
        return bound, announcement(load_scope())
    return bound, _announced(run, agent, load_scope)


def _announced(run: Run, agent: Agent, load_scope: Callable[[], Scope]) -> str:
    key = (run.user_id, agent.pk)
    now = time.monotonic()
    announced_at, text = ANNOUNCED.get(key, (now - 2 * ANNOUNCED_SECONDS, ""))
    if now - announced_at > ANNOUNCED_SECONDS:
        text = announcement(load_scope())
        if len(ANNOUNCED) >= MAX_ANNOUNCED:
            ANNOUNCED.clear()
        ANNOUNCED[key] = (now, text)
    return text


def _own_files(run: Run) -> Scope:
    """Return the files of the run's chat and project."""
    if not run.topic:
        return Scope(frozenset())
    project = next(iter(_project_topics(run)), run.topic)
    return Scope(frozenset(topic_collections(run.user_id, run.topic, project)))


def _project_topics(run: Run) -> list[str]:
    return [f"{PROJECT_TOPIC_PREFIX}{run.project_id}"] if run.project_id else []
