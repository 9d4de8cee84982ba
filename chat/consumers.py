from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from django.core.exceptions import ObjectDoesNotExist
from django.db.models import QuerySet
from django.utils.functional import Promise as StrPromise
from django.utils.translation import gettext_lazy as _

from agents import runs
from agents.consumers import BadFrame, WatchingConsumer
from agents.engine.events import Type
from agents.fragments import Watched
from agents.models import Run
from chat import fragments, sessions
from chat.models import ChatSession, Message

# What changes what stands around the conversation, too.
AROUND = {Type.RUN_FINISHED, Type.RUN_PAUSED, Type.APPROVAL_RESOLVED}


class ChatConsumer(WatchingConsumer):
    """One browser tab on one chat session."""

    is_late = False

    async def find_topic(self) -> str | None:
        if (session := await self._session()) is None:
            return None
        self.session = session
        return session.topic

    async def greet(self) -> None:
        """Bring the page up to date: messages it has not, and the last run that it has."""
        page = parse_qs(self.scope["query_string"].decode("latin-1"))
        self.last = _number(page.get("after", [""])[0]) or 0
        self.around = fragments.Surroundings()
        last_shown = await self._answered().filter(pk__lte=self.last).alast()
        if last_shown is not None:
            await self.watch(last_shown.run_id)
        await self._add_new()
        await self.show(self.around.changes, self.session)

    async def look_again(self, told: dict[str, Any]) -> None:
        await super().look_again(told)
        await self._add_new()

    async def handle(self, frame: dict[str, Any]) -> None:
        if await self._session() is None:
            raise BadFrame(_("This session is not there any more."))
        match frame:
            case {"type": "message", "text": str(text), "client_id": str(client_id)}:
                agent = frame.get("agent")
                await self.say(text, client_id, agent if isinstance(agent, str) else "")
            case {"type": "stop", "run": str(run) | int(run)}:
                await self.stop(_number(run))
            case _:
                raise BadFrame(_("The page sent something that cannot be read."))

    async def say(self, text: str, client_id: str, agent: str) -> None:
        user = self.scope["user"]
        try:
            message = await database_sync_to_async(self._in_language)(
                sessions.say, self.session, user, text, client_id, agent
            )
        except sessions.NotSaid as reason:
            await self.refuse(reason.args[0])
            return
        if message.is_new:  # the message itself, once it is shown, tells that it was taken
            await sessions.ask(self.session, message)
        else:
            await self.show(fragments.composer_state, self.session, client_id)

    async def stop(self, pk: int | None) -> None:
        run = await Run.objects.live().filter(pk=pk, topic=self.session.topic).afirst()
        if run is not None:
            await runs.stop(run)
        await self.show(fragments.composer_state, self.session)

    async def message_added(self, told: dict[str, Any]) -> None:
        if told["message"] > self.last:
            await self._add_new(begun=told["run"])

    async def storage_late(self, told: dict[str, Any]) -> None:
        self.is_late = True
        await self.refuse(
            _("Nothing can be saved at the moment. The run goes on as soon as it can.")
        )

    async def run_events(self, told: dict[str, Any]) -> None:
        if told["run"] not in self.watched:
            await self._add_new()
        await super().run_events(told)
        if self.is_late:
            self.is_late = False
            await self.refuse("")
        if {event["type"] for event in told["events"]} & AROUND:
            await self.show(self.around.changes, self.session)

    async def refuse(self, sentence: StrPromise | str) -> None:
        await self.show(fragments.notice, sentence)

    async def _add_new(self, begun: int | None = None) -> None:
        await self.show(self._new_messages, begun)

    def _new_messages(self, begun: int | None) -> str:
        """Frames for messages this page has not; one whose run has just begun, as it began."""
        frames = []
        for message in self._answered().filter(pk__gt=self.last).select_related("run"):
            self.last, run = message.pk, message.run
            watched = self.watched[run.pk] = Watched(run.pk, self.place)
            with suppress(ObjectDoesNotExist):
                view = watched.begin(run) if run.pk == begun else watched.view()
                frames.append(fragments.new_message(message, view))
        return "".join([*frames, self.around.changes(self.session)]) if frames else ""

    def _answered(self) -> QuerySet[Message]:
        return self.session.messages.filter(run__isnull=False).order_by("pk")

    async def _session(self) -> ChatSession | None:
        """Asked anew for every frame: what was allowed a minute ago may not be now."""
        pk = self.scope["url_route"]["kwargs"]["pk"]
        if not await self.is_signed_in():
            return None
        mine = ChatSession.objects.for_user(self.scope["user"]).filter(pk=pk)
        return await mine.select_related("user").afirst()


def _number(value: str | int) -> int | None:
    """A row's id, or None for whatever is none."""
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
