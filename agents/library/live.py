"""The socket of a collection's page: rows of documents as they are read."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from django.db.models import Count, Max, Q
from django.template.loader import render_to_string

from agents.db import database
from agents.models import Collection, Document
from agents.web.consumers import LiveConsumer

from . import events, listing

PAUSE_SECONDS = 0.25


class CollectionConsumer(LiveConsumer):
    """Sends each document that changed, as its whole row."""

    place = "library"
    may_edit = False
    pending: Sequence[int] = ()  # documents that were in progress in the last frame
    known: tuple[int, int | None] = (0, None)  # number of documents, and the newest

    def find_topic(self) -> str | None:
        if not self.is_signed_in():
            return None
        pk, user = self.scope["url_route"]["kwargs"]["pk"], self.scope["user"]
        found = Collection.objects.for_user(user).with_page().filter(pk=pk).first()
        if found is None:
            return None
        self.collection = found
        self.may_edit = Collection.objects.editable_by(user).filter(pk=pk).exists()
        return events.topic(pk)

    async def send_initial(self) -> None:
        if await self.show(self.initial_frames, ask=database.run_deferred) is None:
            await self._end(self.lost_access_code)

    def initial_frames(self) -> str | None:
        # Access may have been revoked while it waited for its turn.
        if self.find_topic() is None:
            return None
        self.known = self._content()
        return self._changed_frames()

    async def document_changed(self, notification: dict[str, Any]) -> None:
        """Display what changed, if the user can still see it; what comes meanwhile is, too."""
        await asyncio.sleep(PAUSE_SECONDS)
        await self.look_again({})

    def missed_frames(self) -> str:
        before, self.known = self.known, self._content()
        frames = self._changed_frames()
        return frames if before == self.known else f"{frames}{self._reload_frame()}"

    def _content(self) -> tuple[int, int | None]:
        found = self.collection.documents.aggregate(count=Count("pk"), newest=Max("pk"))
        return found["count"], found["newest"]

    def _changed_frames(self) -> str:
        """Render documents in progress, and those that just ended."""
        pending = Q(status__in=listing.PENDING)
        was_pending = Q(pk__in=self.pending)
        found = self.collection.documents.filter(pending | was_pending)
        rows = list(found.select_related("owner__profile").order_by("pk"))
        self.pending = [row.pk for row in rows if row.is_pending]
        return "".join([self._summary(), *map(self._row, rows)])

    def _row(self, document: Document) -> str:
        row = listing.DocumentRow(document=document, may_edit=self.may_edit)
        return render_to_string("library/_document_row.html", {"row": row, "is_oob": True})

    def _summary(self) -> str:
        row = listing.collection_row(self.collection, self.scope["user"])
        return render_to_string("library/_summary.html", {"row": row, "is_oob": True})

    def _reload_frame(self) -> str:
        """Let the page load its list again: documents were added or deleted elsewhere."""
        context = {"collection": self.collection, "at": time.monotonic_ns()}
        return render_to_string("library/_reload.html", context)

    def has_live(self) -> bool:
        return bool(self.pending)
