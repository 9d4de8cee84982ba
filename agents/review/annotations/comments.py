"""Comments by the members of a chat."""

from functools import partial

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from agents.models import Membership, Run
from agents.review.models import Comment
from agents.runs import pubsub

from .feedback import FeedbackRejected, clean_text

MAX_COMMENTS = 200


def commentable_runs(user: User) -> QuerySet[Run]:
    """Return runs of chats the user shares with others."""
    shared = Run.objects.filter(topic__in=Membership.objects.shared_topics(user))
    return shared.unhidden(user)


def add(user: User, run: Run, step: int, text: str) -> Comment:
    """Save a comment and notify every page that displays it."""
    cleaned = clean_text(text)
    if not cleaned:
        raise FeedbackRejected(_("Enter some text first."))
    if step and not run.steps.filter(number=step).exists():
        raise FeedbackRejected(_("This step doesn't exist."))
    if run.comments.filter(step=step).count() >= MAX_COMMENTS:
        raise FeedbackRejected(
            _("Comment not added: the limit of %(most)d comments is reached.")
            % {"most": MAX_COMMENTS}
        )
    with transaction.atomic():
        comment = run.comments.create(step=step, author=user, text=cleaned)
        _publish(run, step)
    return comment


def delete(user: User, pk: int) -> Comment:
    """Delete one's own comment; raise Comment.DoesNotExist for others."""
    comment = Comment.objects.for_user(user).select_related("run").get(author=user, pk=pk)
    with transaction.atomic():
        Comment.objects.filter(pk=comment.pk).delete()
        _publish(comment.run, comment.step)
    return comment


def _publish(run: Run, step: int) -> None:
    facts = {"run": run.pk, "step": step}
    transaction.on_commit(
        partial(async_to_sync(pubsub.publish), run.topic, "run.commented", **facts)
    )
