"""Deleted memories and experiences of a user on the page *Recently deleted*."""

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from agents.access.recently_deleted import Kind, Restored
from agents.engine.text import shorten
from agents.memory import memories, store
from agents.models import Experience, Memory
from agents.runs import pubsub

MAX_TITLE_CHARS = 100


class DeletedMemories(Kind):
    name = "memory"
    label = _("Memory")
    plural = _("Memories")
    model = Memory

    def restorable_by(self, user: User) -> QuerySet[Memory]:
        return Memory.objects.editable_by(user).exclude(deleted_at=None)

    def title(self, row: Memory) -> str:
        return shorten(row.text, MAX_TITLE_CHARS)

    def restore(self, row: Memory, user: User, name: str = "") -> Restored:
        memories.restore(row)
        transaction.on_commit(lambda: announce(row))
        return Restored(name=self.title(row), url=page_of(row))


class DeletedExperiences(Kind):
    name = "experience"
    label = _("Lesson")
    plural = _("Lessons")
    model = Experience

    def restorable_by(self, user: User) -> QuerySet[Experience]:
        return Experience.objects.editable_by(user).exclude(deleted_at=None)

    def title(self, row: Experience) -> str:
        return shorten(row.text, MAX_TITLE_CHARS)

    def restore(self, row: Experience, user: User, name: str = "") -> Restored:
        store.restore(row)
        return Restored(name=self.title(row), url=reverse("people:personalization"))


def announce(memory: Memory) -> None:
    """Update the card of a memory on every open page."""
    if (run := memory.run) is not None:
        async_to_sync(pubsub.publish)(run.topic, "run.remembered", run=run.pk)


def page_of(memory: Memory) -> str:
    project = memory.project
    return reverse("people:personalization") if project is None else project.get_absolute_url()
