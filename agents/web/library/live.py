"""The socket of a collection's page: rows of documents as they are read."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from django.db.models import Count, Max, Q
from django.template.loader import render_to_string

from agents.db import database
from agents.models import Collection
from agents.models.knowledge.sources import followable_by
from agents.web.consumers import LiveConsumer

from . import events, listing, sources

PAUSE_SECONDS = 0.25


class CollectionConsumer(LiveConsumer):
    """Sends each document that changed, as its whole row."""

    may_edit = False
    may_follow = False
    pending: Sequence[int] = ()  # documents that were in progress in the last frame
    content: tuple[int, int | None] = (0, None)  # number of documents, and the newest

    def find_topic(self) -> str | None:
        if not self.is_signed_in():
            return None
        user = self.scope["user"]
        pk = self.scope["url_route"]["kwargs"]["pk"]
        collection = Collection.objects.for_user(user).with_page().filter(pk=pk).first()
        if collection is None:
            return None
        self.collection = collection
        self.may_edit = Collection.objects.editable_by(user).filter(pk=pk).exists()
        self.may_follow = followable_by(user).filter(pk=pk).exists()
        return events.topic(pk)

    async def send_initial(self) -> None:
        await self.show_if_visible(self.initial_frames, execute=database.run_deferred)

    def initial_frames(self) -> str:
        self.content = self._read_content()
        return self._changed_frames()

    async def document_changed(self, notification: dict[str, Any]) -> None:
        """Display what changed, if the user can still see it; what comes meanwhile is, too."""
        await asyncio.sleep(PAUSE_SECONDS)
        await self.look_again({})

    handlers = LiveConsumer.handlers | {events.CHANGED: document_changed}

    def missed_frames(self) -> str:
        former_content = self.content
        self.content = self._read_content()
        frames = self._changed_frames()
        if self.content == former_content:
            return frames
        # Documents were added or deleted elsewhere, so the page loads its list again.
        context = {"collection": self.collection, "at": time.monotonic_ns()}
        return frames + render_to_string("library/_reload.html", context)

    def _read_content(self) -> tuple[int, int | None]:
        content = self.collection.documents.aggregate(count=Count("pk"), newest=Max("pk"))
        return content["count"], content["newest"]

    def _changed_frames(self) -> str:
        """Render the summary, documents in progress and those that just ended."""
        summary = listing.collection_row(self.collection, self.scope["user"])
        frames = [render_to_string("library/_summary.html", {"row": summary, "is_oob": True})]
        listed = sources.rows(self.collection, self.scope["user"]) if self.may_follow else []
        for source in listed:
            context = {"entry": source, "is_oob": True}
            frames.append(render_to_string("library/_source_state.html", context))
        is_pending = Q(status__in=listing.PENDING)
        was_pending = Q(pk__in=self.pending)
        changed = self.collection.documents.filter(is_pending | was_pending)
        documents = list(changed.select_related("owner__profile").order_by("pk"))
        self.pending = [document.pk for document in documents if document.is_pending]
        for document in documents:
            row = listing.DocumentRow(document=document, may_edit=self.may_edit)
            context = {"row": row, "is_oob": True}
            frames.append(render_to_string("library/_document_row.html", context))
        return "".join(frames)

    def has_live(self) -> bool:
        return bool(self.pending)
