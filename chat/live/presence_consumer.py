"""Announces the users who are on the page of a shared chat."""

import asyncio
from typing import Any

from agents.access.names import display_name
from agents.runs import pubsub
from agents.web.consumers import LiveConsumer
from chat import fragments
from chat.models import ChatSession
from chat.sessions import presence
from chat.sessions.presence import Person, Presence


class PresenceConsumer(LiveConsumer):
    """A page whose user is visible to others, while its chat is shared."""

    session: ChatSession
    topic = ""  # set once access is granted
    tab: str
    attending: asyncio.Task[None] | None = None  # only in shared chats
    shown_people: tuple[Person, ...] = ()

    async def _update_presence(self) -> None:
        """Announce presence while the chat is shared."""
        if self.session.is_shared and self.attending is None:
            self.presence = Presence()
            self.stack.push_async_callback(
                pubsub.publish, self.topic, "presence.gone", tab=self.tab
            )
            self.attending = self._spawn(self._announce_loop())
        elif not self.session.is_shared and self.attending is not None:
            self.attending.cancel()
            self.attending = None
            await self._show_people(())

    async def _announce_loop(self) -> None:
        await self._announce(is_new=True)
        while True:
            await asyncio.sleep(presence.HEARTBEAT_SECONDS)
            await self._announce()

    async def _announce(self, *, is_new: bool = False) -> None:
        user = self.scope["user"]
        person = {"tab": self.tab, "user": user.pk, "name": display_name(user)}
        await pubsub.publish(self.topic, "presence.here", is_new=is_new, **person)

    async def presence_here(self, notification: dict[str, Any]) -> None:
        if self.attending is None:
            return
        self.presence.here(
            notification["tab"], Person(notification["user"], notification["name"])
        )
        await self._show_people(self.presence.people())
        if notification["is_new"] and notification["tab"] != self.tab:
            await self._announce()  # otherwise a newcomer wouldn't see this user for a while

    async def presence_gone(self, notification: dict[str, Any]) -> None:
        if self.attending is not None:
            self.presence.remove(notification["tab"])
            await self._show_people(self.presence.people())

    handlers = LiveConsumer.handlers | {
        "presence.here": presence_here,
        "presence.gone": presence_gone,
    }

    async def _show_people(self, people: tuple[Person, ...]) -> None:
        visitors = tuple(person for person in people if person.pk != self.scope["user"].pk)
        if visitors != self.shown_people:
            self.shown_people = visitors
            await self.show(fragments.render_people, visitors)
