"""Tells open pages that a collection or its documents changed."""

from functools import partial

from asgiref.sync import async_to_sync
from django.db import transaction

from agents.knowledge import ingestion
from agents.models import Collection
from agents.runs import pubsub

CHANGED = "document.changed"  # as the queue that reads them says
ACCESS_CHANGED = "people.changed"


topic = ingestion.topic


def documents_changed(collection: Collection) -> None:
    _publish(collection, CHANGED)


def access_changed(collection: Collection) -> None:
    """Let open pages check access again."""
    _publish(collection, ACCESS_CHANGED)


def _publish(collection: Collection, kind: str) -> None:
    tell = partial(async_to_sync(pubsub.publish), topic(collection.pk), kind)
    transaction.on_commit(tell)
