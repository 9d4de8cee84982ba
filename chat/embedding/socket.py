"""The socket of an embedded chat: that of a chat, for a visitor and with one agent.

Its frame is a page of ours in a page of another site. It brings what proves its visitor as a
WebSocket subprotocol, because other sites' frames have no cookies. The visitor's account and
chat are made with their first message.
"""

import secrets
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agents.access.audit.request_context import client_address
from agents.access.requests import Scope
from agents.db import database
from agents.db.sanitize import parse_id
from agents.engine.errors import AgentError, QuotaExceeded
from agents.models import Embed, EmbedVisitor, Run
from agents.models.types import LazyText
from agents.review.annotations import feedback
from agents.review.annotations.feedback import FeedbackRejected, RatingInput
from agents.runs import close_codes, pubsub
from agents.web import request_rate
from agents.web.consumers import connections
from agents.web.preferences import Preferences
from agents.web.presentation import EMBED, EMBED_QUIET
from chat import fragments
from chat.errors import MessageRejected, MessageTooLong
from chat.live.consumers import ChatConsumer
from chat.live.incoming_frames import BadFrame, MessageFrame, RegenerateFrame, StopFrame
from chat.live.page_state import Conversation
from chat.messages.submission import clean_text
from chat.models import ChatSession
from chat.sessions import session_state, titles

from . import visitors
from .frames import EMBED_FRAMES, RateFrame
from .visitors import MAX_MESSAGE_CHARS, Identity, VisitorRefused

SUBPROTOCOL = "ashiato.embed"
MAX_CONNECTIONS = 300  # per minute and address
# Per address and process: before the first message there is no visitor to limit.
MAX_OPEN = 500
GOOD = {"good": True, "bad": False, "none": None}


class EmbeddedConversation(Conversation):
    """What a frame shows: the last messages, without a way into the product."""

    place = EMBED
    chrome_class = fragments.ComposerChrome

    def earlier_link(self, oldest: int) -> str:
        return ""


class QuietConversation(EmbeddedConversation):
    place = EMBED_QUIET


class EmbedConsumer(ChatConsumer):
    """One frame of an embedded chat."""

    frames = EMBED_FRAMES
    session: ChatSession | None = None  # type: ignore[assignment]  # until the first message
    credential: str
    embed: Embed
    identity: Identity
    visitor: EmbedVisitor | None = None

    async def connect(self) -> None:
        offered = self.scope["subprotocols"]
        address = _address(self.scope)
        is_flood = request_rate.is_exceeded("embed", address, MAX_CONNECTIONS)
        if len(offered) != 2 or offered[0] != SUBPROTOCOL or is_flood:
            await self.close(close_codes.NOT_FOUND)  # type: ignore[no-untyped-call]
            return
        name = secrets.token_hex(8)
        tracked = connections.track_socket(f"at {address}", name, self._on_replaced, MAX_OPEN)
        try:
            self.stack.enter_context(tracked)
        except connections.TooManySockets:
            await self.close(close_codes.NOT_FOUND)  # type: ignore[no-untyped-call]
            return
        self.credential = offered[1]
        await super().connect()

    async def accept(self, *_arguments: Any, **_options: Any) -> None:
        await super().accept(SUBPROTOCOL)  # type: ignore[no-untyped-call]

    def find_topic(self) -> str | None:
        """Return the topic of the visitor's chat, or before there is one, the embed's."""
        public_id = self.scope["url_route"]["kwargs"]["public_id"]
        try:
            self.embed, self.identity = visitors.identify(public_id, self.credential)
        except VisitorRefused as refusal:
            self.lost_access_code = refusal.code
            return None
        self.lost_access_code = close_codes.FORBIDDEN
        self.preferences = Preferences(language=self.language)
        self.visitor = visitors.find(self.embed, self.identity)
        user = AnonymousUser() if self.visitor is None else self.visitor.user
        self.scope["user"] = user
        self.may_write = True
        if self.visitor is None:
            return None if self.session is not None else self.embed.topic
        if not user.is_active:
            return None
        if self.session is None and not self.topic:
            self.session = self._chats().first()
        elif self.session is not None:
            self.session = self._chats().filter(pk=self.session.pk).first()
            if self.session is None:
                return None
        return self.embed.topic if self.session is None else self.session.topic

    def _chats(self) -> QuerySet[ChatSession]:
        """Return the visitor's chats, the one that the frame shows or continues first."""
        chats = ChatSession.objects.owned_by(self.scope["user"]).order_by("-updated_at")
        if self.topic:
            return chats
        if (last := parse_id(self.query_params.get("after"))) is not None:
            return chats.filter(messages=last)
        return chats.none() if "new" in self.query_params else chats

    def owner(self) -> int | str:
        if self.visitor is None:
            return f"visitor {self.credential}"
        return super().owner()

    def followed_topics(self, topic: str) -> tuple[str, ...]:
        return (self.embed.topic, *self._own_topics())

    def _own_topics(self) -> tuple[str, ...]:
        if self.session is None or self.visitor is None:
            return ()
        return (self.session.topic, pubsub.person_topic(self.visitor.user_id))

    def open_conversation(self) -> None:
        if self.session is None:
            self.topic = self.embed.topic
            return
        self.conversation_class = (  # type: ignore[misc]
            EmbeddedConversation if self.embed.shows_steps else QuietConversation
        )
        super().open_conversation()

    async def send_initial(self) -> None:
        if self.session is not None:
            await super().send_initial()

    def missed_frames(self) -> str:
        return "" if self.session is None else super().missed_frames()

    def recheck(self) -> tuple[ChatSession, User]:
        """Check access for every message; before the first one there is no chat."""
        if self.find_topic() is None:
            raise BadFrame(_("This chat isn’t available any more."))
        return self.session, self.scope["user"]  # type: ignore[return-value]

    async def _ensure_access(self) -> None:
        """Close the socket if the visitor's token or the embedded chat is no longer valid."""
        if await database.run_urgent(self.find_topic) is None:
            await self._end(self.lost_access_code)

    # Frames

    async def say(self, frame: MessageFrame) -> None:
        await self._ensure_access()
        plain = MessageFrame(
            type="message",
            text=frame.text,
            client_id=frame.client_id,
            agent=self.embed.agent.name,
        )
        try:
            session = await database.run_urgent(self._in_language, self._admit, frame.text)
        except MessageRejected as reason:
            await self.show(fragments.render_notice, str(reason))
            return
        if self.session is None:
            await self._enter(session)
        await super().say(plain)

    def _admit(self, text: str) -> ChatSession:
        """Return the chat to ask in, a new one of a new visitor if need be, or say why not."""
        text = clean_text(text)
        if len(text) > MAX_MESSAGE_CHARS:
            sentence = ngettext(
                "This message is too long. The limit is %(most)d character.",
                "This message is too long. The limit is %(most)d characters.",
                MAX_MESSAGE_CHARS,
            )
            raise MessageRejected(sentence % {"most": MAX_MESSAGE_CHARS})
        if self.session is not None:
            if session_state.live_run(self.session) is not None:
                raise MessageRejected(
                    _("An answer is being written. Wait until it's finished, or stop it first.")
                )
            return self.session
        self.visitor = visitors.find_or_create(self.embed, self.identity, _address(self.scope))
        user = self.visitor.user
        self.scope["user"] = user
        # The former message of a new chat may have been rejected.
        if unused := ChatSession.objects.owned_by(user).filter(messages=None).first():
            return unused
        return ChatSession.objects.create(
            user=user,
            title=titles.distinct(user.pk, titles.first_title(self.embed.agent, text)),
            # No model writes a better one, which nobody would read.
            title_source=ChatSession.TitleSource.PERSON,
        )

    async def _enter(self, session: ChatSession) -> None:
        """Show and follow a new chat."""
        self.session = session
        self.open_conversation()
        for topic in self._own_topics():
            await self.follow(topic)
        await self.send_initial()

    def rejection_text(self, reason: MessageRejected) -> LazyText:
        """Return a reason without names and figures of the installation."""
        if isinstance(reason.__cause__, QuotaExceeded):
            return gettext_lazy("The limit of this chat is reached. Try again later.")
        if isinstance(reason.__cause__, AgentError):
            return gettext_lazy("This chat can’t answer at the moment. Try again later.")
        if isinstance(reason, MessageTooLong):
            return gettext_lazy("This message is too long.")
        return super().rejection_text(reason)

    async def regenerate(self, frame: RegenerateFrame) -> None:
        await self._ensure_access()
        if self.session is not None:
            own_agent = {"agent": self.embed.agent.name, "model": ""}
            await super().regenerate(frame.model_copy(update=own_agent))

    async def stop(self, frame: StopFrame) -> None:
        await self._ensure_access()
        if self.session is not None:
            await super().stop(frame)

    async def rate(self, frame: RateFrame) -> None:
        await self._ensure_access()
        session = self.session
        if session is None:
            return

        def save() -> None:
            own = Run.objects.filter(user=self.scope["user"], topic=session.topic)
            if (run := own.filter(pk=frame.run or 0).first()) is not None:
                feedback.rate(self.scope["user"], run, RatingInput(is_good=GOOD[frame.rating]))

        try:
            await database.run(self._in_language, save)
        except FeedbackRejected as reason:
            await self.send_error(str(reason))

    frame_handlers: ClassVar[dict[str, Callable[[Any, Any], Awaitable[None]]]] = {
        "message": say,
        "regenerate": regenerate,
        "stop": stop,
        "rate": rate,
    }

    # What a visitor hears of: nothing about lists, members and other chats.
    handlers = {
        kind: handler
        for kind, handler in ChatConsumer.handlers.items()
        if kind
        in {
            "run.events",
            "run.judged",
            "storage.late",
            "message.added",
            "message.corrected",
            "messages.deleted",
            "branch.shown",
            "people.changed",
            pubsub.REFRESH_KIND,
        }
    }


def _address(scope: Scope) -> str:
    """Return the address of the browser, as for requests."""
    request = HttpRequest()
    forwarded = dict(scope["headers"]).get(b"x-forwarded-for", b"").decode("latin-1")
    client = scope.get("client") or ("",)
    request.META = {"REMOTE_ADDR": client[0], "HTTP_X_FORWARDED_FOR": forwarded}
    return client_address(request)
