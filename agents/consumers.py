"""A socket that watches runs. It never waits for one: it is told, and shows."""

import json
import logging
from typing import Any

from channels.db import database_sync_to_async
from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext

from agents.fragments import Watched
from agents.models import Run

logger = logging.getLogger(__name__)

MOST_FRAME = 1_048_576
NOT_FOUND = 4404
TOO_LARGE = 4413


class BadFrame(Exception):
    """The browser sent something that cannot be read."""


class WatchingConsumer(AsyncWebsocketConsumer):
    """Shows live runs to one page, each from where that page stands.

    The topic is joined before the rows are read, and every batch that is told carries its
    numbers: what was shown already is passed over, and after a gap the rows are read again.
    """

    place = "chat"

    async def connect(self) -> None:
        self.watched: dict[int, Watched] = {}
        self.language = _language(self.scope)
        await self.accept()
        topic = await self.find_topic()
        if topic is None:
            await self.close(NOT_FOUND)
            return
        self.topic = topic
        await self.channel_layer.group_add(topic, self.channel_name)
        await self.greet()

    async def disconnect(self, code: int) -> None:
        if hasattr(self, "topic"):
            await self.channel_layer.group_discard(self.topic, self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None):
        """Answer every frame, whatever it holds; a bad one must not end the socket."""
        try:
            await self.handle(_decoded(text_data))
        except BadFrame as error:
            await self.refuse(str(error))
        except StopConsumer:
            raise
        except Exception:
            logger.exception("A frame could not be handled.")
            await self.refuse(gettext("Something went wrong. Please try again."))

    async def run_events(self, told: dict[str, Any]) -> None:
        events = told["events"]
        watched = self.watched.get(told["run"])
        if watched is None or events[-1]["seq"] <= watched.seq:
            return
        if not watched.follows(events):
            await self.show(watched.snapshot)
        elif watched.needs_rows(events):
            await self.show(watched.changes, events)
        else:
            await self.send(watched.words(events))

    async def watch(self, run: int) -> None:
        """Show this run as it is now, and what happens to it from here on."""
        self.watched[run] = Watched(run, self.place)
        await self.show(self.watched[run].snapshot)

    async def show(self, fragment, *subject: Any) -> None:
        await self.send(await database_sync_to_async(self._in_language)(fragment, *subject))

    def _in_language(self, fragment, *subject: Any) -> str:
        with translation.override(self.language):
            return fragment(*subject)

    async def find_topic(self) -> str | None:
        raise StopConsumer

    async def greet(self) -> None:
        """What the page is shown once it is connected."""

    async def handle(self, frame: dict[str, Any]) -> None:
        raise BadFrame(gettext("This page takes no messages."))

    async def refuse(self, sentence: str) -> None:
        """Tell the person what was wrong with what the page sent."""


class RunConsumer(WatchingConsumer):
    """The page of one run."""

    place = "trace"

    async def find_topic(self) -> str | None:
        pk = self.scope["url_route"]["kwargs"]["pk"]
        runs = await database_sync_to_async(Run.objects.for_user)(self.scope["user"])
        self.run = await runs.filter(pk=pk).afirst()
        return self.run and self.run.topic

    async def greet(self) -> None:
        await self.watch(self.run.pk)


def _decoded(text: str | None) -> dict[str, Any]:
    if text is None:
        raise BadFrame(gettext("This page takes text, not binary data."))
    if len(text) > MOST_FRAME:
        raise BadFrame(gettext("That is too long to be sent."))
    try:
        frame = json.loads(text)
    except (ValueError, RecursionError):
        raise BadFrame(gettext("The page sent something that cannot be read.")) from None
    if not isinstance(frame, dict):
        raise BadFrame(gettext("The page sent something that cannot be read."))
    return frame


def _language(scope: dict[str, Any]) -> str:
    """The language of the page: its cookie, or what the browser prefers."""
    chosen = scope.get("cookies", {}).get(settings.LANGUAGE_COOKIE_NAME)
    return chosen if chosen in dict(settings.LANGUAGES) else settings.LANGUAGE_CODE
