"""Examples: saved runs whose question is asked again and compared with the recording.

Tools answer from the recording, so nothing outside is affected. Such a run has no row: it
belongs to no user and would count in every list and figure.
"""

from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.access import audit, masking
from agents.catalog import agent_factory, model_setups
from agents.catalog.recorded_tools import observations, registry_of
from agents.db import database
from agents.engine.errors import AgentError
from agents.engine.events import Event, EventType
from agents.engine.loop import Events, RecordedCall, RecordedCalls
from agents.models import Agent, Run
from agents.review.models import Example, ExampleSet

from .feedback import MAX_ANSWER_CHARS, FeedbackRejected, clean_text
from .similarity import overlap, text_similarity

MAX_NAME_CHARS = 120
NEEDS_PERSON = "The run needs approval, and nobody can approve while examples run."


def save(user: User, run: Run, name: str, expected: str, set_id: str = "") -> Example:
    """Save a finished run with its tool results; raise FeedbackRejected."""
    name = " ".join(clean_text(name).split())
    if run.is_live:
        raise FeedbackRejected(
            _("This run is still in progress. Try again when it has finished.")
        )
    if run.workflow_id is not None:
        raise FeedbackRejected(
            _("Workflow runs can't be saved as examples. Only agent runs can.")
        )
    if not 0 < len(name) <= MAX_NAME_CHARS:
        raise FeedbackRejected(
            _("Name must be 1–%(most)d characters.") % {"most": MAX_NAME_CHARS}
        )
    try:
        with transaction.atomic():
            example = Example.objects.create(
                name=name,
                example_set=_find_set(set_id),
                run=run,
                agent=run.agent,
                agent_name=run.agent_name,
                question=run.query,
                history=run.history,
                observations=observations(run),
                expected=clean_text(expected, MAX_ANSWER_CHARS),
                saved_by=user,
            )
            if not masking.is_own(run, user):
                audit.record(user, audit.EXAMPLE_SAVED, run, example=example.pk)
            return example
    except IntegrityError:
        raise FeedbackRejected(_("An example with this name already exists.")) from None


def _find_set(set_id: str) -> ExampleSet:
    """Return the chosen set; the default one if there is none."""
    is_number = set_id.isascii() and set_id.isdigit() and len(set_id) < 18
    example_set = ExampleSet.objects.filter(pk=int(set_id)).first() if is_number else None
    return example_set or ExampleSet.objects.default()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleResult:
    """The result of rerunning an example."""

    name: str
    agent: str
    model: str
    answer: str = ""
    calls: float = 0.0  # share of equal tool calls with equal arguments
    likeness: float | None = None  # of the answers; None without an expected one
    not_recorded: tuple[str, ...] = ()
    problem: str = ""

    @property
    def score(self) -> float:
        parts = [self.calls] if self.likeness is None else [self.calls, self.likeness]
        return 0.0 if self.problem else sum(parts) / len(parts)


async def evaluate(example: Example, agent: Agent, model: str = "") -> ExampleResult:
    """Run the example with the current agent, and compare."""
    model = model or await database.run(model_setups.model_name, agent)
    result = partial(ExampleResult, name=example.name, agent=agent.name, model=model)
    recorded_calls = RecordedCalls(map(RecordedCall.from_dict, example.observations))
    run = Run(agent=agent, model=model, query=example.question, history=example.history)
    try:
        last = await _last_event(await agent_factory.dry_run(run, registry_of(recorded_calls)))
    except AgentError as error:
        return result(problem=str(error))
    if last.type is EventType.RUN_PAUSED:
        return result(problem=NEEDS_PERSON)
    ending = last.data
    return result(
        answer=ending["answer"],
        calls=overlap(
            [call.key for call in recorded_calls.recorded],
            [call.key for call in recorded_calls.answered],
        ),
        likeness=text_similarity(example.expected, ending["answer"])
        if example.expected
        else None,
        not_recorded=recorded_calls.not_recorded,
        problem="" if ending["answer"] else ending["detail"] or ending["stopped_reason"],
    )


async def _last_event(stream: Events) -> Event:
    async with aclosing(stream) as events:
        async for event in events:
            last = event
    return last


def save_score(example: Example, score: float) -> None:
    Example.objects.filter(pk=example.pk).update(score=score, scored_at=timezone.now())
