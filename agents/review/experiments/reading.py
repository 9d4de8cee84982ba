"""What reviewers read of examples: those of the agents in their scope, masked."""

from collections.abc import Iterable
from copy import copy

from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Q, QuerySet

from agents.access import masking
from agents.access.masking import Session
from agents.models import ReviewScope, Run
from agents.review.models import Example, ExampleSet

from .models import Experiment

MASKED_COLUMNS = ("name", "question", "expected", "checks", "tags")


def examples_in_scope(rows: QuerySet[Example], user: User) -> QuerySet[Example]:
    """Return examples of runs that a reviewer can see, and those by hand for their agents."""
    agents = ReviewScope.objects.agents_of(user)
    by_hand = Q(run=None)
    if agents is not None:
        # Without an agent, they are for that of their set; deleted ones left their name.
        of_set = Q(example_set__agent=None) | Q(example_set__agent__in=agents)
        by_hand &= Q(agent__in=agents) | Q(agent=None, agent_name="") & of_set
    # Looked up one by one: there are few examples, and many runs.
    recorded = Run.objects.in_scope(user).filter(pk=OuterRef("run"))
    return rows.filter(by_hand | Exists(recorded))


def sets_in_scope(rows: QuerySet[ExampleSet], user: User) -> QuerySet[ExampleSet]:
    """Return example sets of a reviewer's agents, or with something of them."""
    agents = ReviewScope.objects.agents_of(user)
    if agents is None:
        return rows
    examples = examples_in_scope(Example.objects.all(), user).filter(example_set=OuterRef("pk"))
    experiments = Experiment.objects.for_user(user).filter(example_set=OuterRef("pk"))
    return rows.filter(Q(agent__in=agents) | Exists(examples) | Exists(experiments))


def mask_examples(rows: Iterable[Example], user: User, session: Session) -> list[Example]:
    """Return the examples; copies with masked text of those from runs that are masked."""
    examples = list(rows)
    run_ids = {example.run_id for example in examples if example.run_id}
    runs = Run.objects.filter(pk__in=run_ids).only("user", "topic", "origin", "origin_step")
    masked_ids = {
        run.pk
        for run in masking.load_origins(runs)
        if masking.is_masked_for(run, user, session)
    }
    return [_masked(row) if row.run_id in masked_ids else row for row in examples]


def _masked(example: Example) -> Example:
    masked = copy(example)
    for name in MASKED_COLUMNS:
        setattr(masked, name, masking.mask_value(getattr(example, name)))
    return masked
