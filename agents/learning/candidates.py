"""The experiences that a run may use, as values."""

from dataclasses import dataclass

from agents.models import Agent, Experience, Run

from .policy import Reach, usable_by

MAX_CANDIDATES = 500
COLUMNS = (
    *("pk", "kind", "scope", "question", "text", "helpful", "harmful"),
    *("run_id", "vector", "vector_model"),
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """An experience that may fit the question."""

    pk: int
    kind: str
    scope: str
    question: str
    lesson: str
    helpful: int
    harmful: int
    run: int | None
    vector: bytes | None
    vector_model: str

    @property
    def text(self) -> str:
        """What is compared with a question by meaning."""
        if self.kind == Experience.Kind.SUCCESS:
            return self.question
        return f"{self.question} {self.lesson}"


def find_candidates(run: Run, agent: Agent, reach: Reach) -> list[Candidate]:
    """Return what this run may use: of its user, its project or its agent."""
    if not agent.learns:
        return []
    rows = usable_by(run, agent).order_by("-helpful", "-pk")
    found = rows.values_list("tools", "collections", *COLUMNS)[:MAX_CANDIDATES]
    return [
        Candidate(*columns)
        for tools, collections, *columns in found
        if reach.covers(tools, collections)
    ]
