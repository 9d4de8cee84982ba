"""What people in a conversation say to each other about what was done in it."""

from functools import partial

from asgiref.sync import async_to_sync
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from agents.models import Membership, Run
from agents.review.models import Comment
from agents.runs import pubsub

from .feedback import NotTaken, written

MOST = 200


def commentable(user) -> QuerySet[Run]:
    """The runs of conversations that this person shares with others."""
    return Run.objects.filter(topic__in=Membership.objects.topics_of(user))


def say(user, run: Run, step: int, text: str) -> Comment:
    """Keep it, and tell every page on which it can be read."""
    words = written(text)
    if not words:
        raise NotTaken(_("Write something first."))
    if step and not run.steps.filter(number=step).exists():
        raise NotTaken(_("There is no such step."))
    if run.comments.filter(step=step).count() >= MOST:
        raise NotTaken(_("There are %(most)d comments here already.") % {"most": MOST})
    with transaction.atomic():
        comment = run.comments.create(step=step, author=user, text=words)
        _tell(run, step)
    return comment


def take_back(user, pk: int) -> Comment:
    """One of one's own; raises Comment.DoesNotExist for any other."""
    comment = Comment.objects.for_user(user).select_related("run").get(author=user, pk=pk)
    with transaction.atomic():
        Comment.objects.filter(pk=comment.pk).delete()
        _tell(comment.run, comment.step)
    return comment


def _tell(run: Run, step: int) -> None:
    facts = {"run": run.pk, "step": step}
    transaction.on_commit(
        partial(async_to_sync(pubsub.publish), run.topic, "run.commented", **facts)
    )
