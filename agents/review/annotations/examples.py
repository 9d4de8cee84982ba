"""Examples: saved runs whose question is asked again and compared with the recording."""

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from agents.access import audit, masking
from agents.catalog.recorded_tools import observations
from agents.db.sanitize import parse_id
from agents.models import Run
from agents.review.models import Example, ExampleSet

from .feedback import MAX_ANSWER_CHARS, FeedbackRejected, clean_text

MAX_NAME_CHARS = 120


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
    chosen_set = ExampleSet.objects.filter(pk=parse_id(set_id) or 0).first()
    try:
        with transaction.atomic():
            example = Example.objects.create(
                name=name,
                example_set=chosen_set or ExampleSet.objects.default(),
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
