"""Gives an agent's search tools what they can read in a run, and says so to its model."""

from collections.abc import Sequence

from agents.engine.tool import Tool
from agents.knowledge.scope import Scope
from agents.models import Agent, Run
from agents.models.projects import TOPIC_PREFIX
from agents.tools.read_document import ReadDocumentTool
from agents.tools.search import SearchTool

from ..search_library import ScopedLibrary, announcement, topic_collections
from .relations import search_scope


def bind(run: Run, agent: Agent, tools: Sequence[Tool]) -> tuple[list[Tool], str]:
    """Return the tools with their scope, and the part of the instructions that announces it.

    Without a search tool, an agent can still search the files of its chat and project.
    """
    searches = [tool for tool in tools if isinstance(tool, SearchTool)]
    own_files = _own_files(run)
    if not searches and not own_files:
        return list(tools), ""
    scope = search_scope(run, agent, _project_topics(run)) if searches else own_files
    library = ScopedLibrary(scope)
    found = list(tools)
    if not searches:
        others = (ReadDocumentTool.name, SearchTool.name)
        found = [tool for tool in tools if tool.name not in others]
        found += [SearchTool(library), ReadDocumentTool(library)]
    for tool in found:
        if isinstance(tool, SearchTool):
            tool.search = library
        elif isinstance(tool, ReadDocumentTool):
            tool.library = library
    return found, announcement(scope)


def _own_files(run: Run) -> Scope:
    """Return the files of the run's chat and project."""
    if not run.topic:
        return Scope(frozenset())
    project = next(iter(_project_topics(run)), run.topic)
    return Scope(frozenset(topic_collections(run.topic, project)))


def _project_topics(run: Run) -> list[str]:
    return [f"{TOPIC_PREFIX}{run.project_id}"] if run.project_id else []
