"""Lets an editor talk to agents, by the Agent Client Protocol over standard input and output.

The SDK does the protocol; a run's events become its updates here. See docs/command-line.md.
"""

from collections.abc import Awaitable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast
from uuid import uuid4

import acp
from acp import schema

from agents.management.run_printer import Reply, WireEvent

from .acp_updates import Translation, text_of, tool_title
from .errors import CommandFailed, ServerError
from .server import Approval, Server

APPROVE, REJECT = "approve", "reject"
# As the calls of ACP know it; what isn't listed has ended with an answer or an error.
STOP_REASONS: dict[str, schema.StopReason] = {
    "completed": "end_turn",
    "tool_failure_degraded": "end_turn",
    "max_steps_reached": "max_turn_requests",
    "tool_call_limit": "max_turn_requests",
    "blocked": "refusal",
    "cancelled": "cancelled",
}
CHAT_PREFIX = "chat-"
MAX_SESSIONS = 50
NO_SESSION = "There is no such session. Start a new one."

Result = TypeVar("Result")


@dataclass(slots=True)
class Session:
    """A conversation in the editor, which is a chat from its first message on."""

    id: str
    agent: str
    chat: int | None = None
    run: int | None = None  # that is going on
    seq: int = 0  # of the last event
    question: Approval | None = None  # which the next prompt answers
    is_canceled: bool = False
    translation: Translation = field(default_factory=Translation)


class EditorAgent:
    """Answers an editor with the agents of a server.

    It isn't derived from the SDK's protocol, whose methods would answer what we don't support.
    """

    editor: acp.Client

    def __init__(self, server: Server, agent: str = "", version: str = "") -> None:
        self.server = server
        self.agent = agent
        self.version = version
        self.sessions: dict[str, Session] = {}

    def on_connect(self, conn: acp.Client) -> None:
        self.editor = conn

    async def initialize(
        self, protocol_version: int, *_values: Any, **_options: Any
    ) -> acp.InitializeResponse:
        return acp.InitializeResponse(
            protocol_version=acp.PROTOCOL_VERSION,
            agent_info=schema.Implementation(
                name="ashiato", title="Ashiato", version=self.version
            ),
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                prompt_capabilities=schema.PromptCapabilities(embedded_context=True),
                session_capabilities=schema.SessionCapabilities(
                    list=schema.SessionListCapabilities()
                ),
            ),
        )

    async def new_session(
        self, cwd: str, *_values: Any, **_options: Any
    ) -> acp.NewSessionResponse:
        session = Session(id=uuid4().hex, agent=self.agent)
        modes = await self._choose_agent(session)
        self.sessions[session.id] = session
        return acp.NewSessionResponse(session_id=session.id, modes=modes)

    async def list_sessions(
        self, *_values: Any, **_options: Any
    ) -> schema.ListSessionsResponse:
        """Return the newest chats, which the editor can continue."""
        chats = await self._ask_server(self.server.chats(MAX_SESSIONS))
        return schema.ListSessionsResponse(
            sessions=[
                schema.SessionInfo(
                    session_id=f"{CHAT_PREFIX}{chat['id']}",
                    cwd="/",
                    title=chat["title"],
                    updated_at=chat["updated_at"],
                )
                for chat in chats
            ]
        )

    async def load_session(
        self, cwd: str, session_id: str, *_values: Any, **_options: Any
    ) -> acp.LoadSessionResponse:
        """Continue a chat: its messages and answers are sent first."""
        session = self.sessions.get(session_id)
        if session is None:
            prefix, _, number = session_id.partition(CHAT_PREFIX)
            if prefix or not number.isdecimal():
                raise acp.RequestError(-32602, NO_SESSION)
            session = Session(id=session_id, agent=self.agent, chat=int(number))
        modes = await self._choose_agent(session)
        if session.chat is not None:
            for message in await self._ask_server(self.server.messages(session.chat)):
                user_text = acp.update_user_message_text(message["text"])
                await self.editor.session_update(session_id, user_text)
                if answer := message.get("answer"):
                    await self._say(session, answer)
        self.sessions[session_id] = session
        return acp.LoadSessionResponse(modes=modes)

    async def set_session_mode(
        self, session_id: str, mode_id: str, **_options: Any
    ) -> acp.SetSessionModeResponse:
        self._session(session_id).agent = mode_id
        return acp.SetSessionModeResponse()

    async def prompt(
        self, session_id: str, prompt: Sequence[Any], **_options: Any
    ) -> acp.PromptResponse:
        session = self._session(session_id)
        text = "\n\n".join(filter(None, map(text_of, prompt)))
        session.is_canceled = False
        try:
            await self._send_or_answer(session, text)
            while (last := await self._follow(session))["type"] == "run_paused":
                if not await self._decide_approvals(session):
                    return acp.PromptResponse(stop_reason="end_turn")
        except CommandFailed as error:
            raise acp.RequestError(-32603, str(error)) from error
        session.run = None
        reason = last["data"]["stopped_reason"]
        if reason not in STOP_REASONS:
            raise acp.RequestError(-32603, last["data"]["detail"] or reason)
        return acp.PromptResponse(stop_reason=STOP_REASONS[reason])

    async def cancel(self, session_id: str, **_options: Any) -> None:
        session = self._session(session_id)
        session.is_canceled = True
        if session.run is not None:
            await self.server.stop(session.run)

    def _session(self, session_id: str) -> Session:
        if (session := self.sessions.get(session_id)) is None:
            raise acp.RequestError(-32602, NO_SESSION)
        return session

    async def _choose_agent(self, session: Session) -> schema.SessionModeState | None:
        """Offer the agents as modes, between which editors let a user switch."""
        agents = await self._ask_server(self.server.agents())
        names = [agent["name"] for agent in agents]
        if session.agent and session.agent not in names:
            known = ", ".join(names) or "none"
            raise acp.RequestError(
                -32602, f"There is no agent named {session.agent!r}. Available: {known}."
            )
        if not names:
            return None
        default = next((each["name"] for each in agents if each.get("is_default")), names[0])
        session.agent = session.agent or default
        modes = [
            schema.SessionMode(
                id=agent["name"],
                name=agent["name"],
                description=agent.get("description") or None,
            )
            for agent in agents
        ]
        return schema.SessionModeState(current_mode_id=session.agent, available_modes=modes)

    async def _send_or_answer(self, session: Session, text: str) -> None:
        """Send a message, or the answer to the question that the run waits for."""
        if session.question is not None:
            question = session.question
            session.question = None
            await self.server.decide(question, Reply(is_approved=True, text=text))
            return
        session.translation = Translation()
        session.seq = 0
        session.chat, session.run = await self.server.send(text, session.agent, session.chat)
        if session.is_canceled:
            await self.server.stop(session.run)

    async def _follow(self, session: Session) -> WireEvent:
        """Pass the run's events on; return the one that ends or pauses it."""
        assert session.run is not None
        async with aclosing(self.server.events(session.run, session.seq)) as events:
            async for event in events:
                session.seq = event["seq"]
                for update in session.translation.updates(event):
                    await self.editor.session_update(session.id, update)
                if event["type"] in {"run_finished", "run_paused"}:
                    return event
        raise ServerError("The server ended the stream before the run ended.", 502)

    async def _decide_approvals(self, session: Session) -> bool:
        """Have the user decide; return whether the run goes on."""
        assert session.run is not None
        for approval in await self.server.approvals(session.run):
            if approval.why == "question":
                await self._say(session, f"{approval.question}\n")
                session.question = approval
                return False
            is_approved = await self._ask_permission(session, approval)
            if is_approved is None:
                await self.server.stop(session.run)
                return True
            await self.server.decide(approval, Reply(is_approved))
        return True

    async def _ask_permission(self, session: Session, approval: Approval) -> bool | None:
        """Return the user's decision; None if the turn was canceled meanwhile."""
        is_repeat = approval.why == "unknown"
        options = [
            schema.PermissionOption(
                option_id=APPROVE,
                name="Run again" if is_repeat else "Approve",
                kind="allow_once",
            ),
            schema.PermissionOption(
                option_id=REJECT,
                name="Mark as done" if is_repeat else "Reject",
                kind="reject_once",
            ),
        ]
        call = schema.ToolCallUpdate(
            tool_call_id=session.translation.requested.get(approval.step, str(approval.id)),
            title=tool_title(approval.tool, approval.arguments),
            status="pending",
            content=[acp.tool_content(acp.text_block(approval.explanation))],
            raw_input=approval.values["arguments"],
        )
        answer = await self.editor.request_permission(session.id, call, options)
        if answer.outcome.outcome == "cancelled":
            return None
        return answer.outcome.option_id == APPROVE

    async def _ask_server(self, request: Awaitable[Result]) -> Result:
        try:
            return await request
        except CommandFailed as error:
            raise acp.RequestError(-32603, str(error)) from error

    async def _say(self, session: Session, text: str) -> None:
        await self.editor.session_update(session.id, acp.update_agent_message_text(text))


async def serve(server: Server, agent: str, version: str) -> None:
    """Answer the editor until it closes our input."""
    editor_agent = cast(acp.Agent, EditorAgent(server, agent, version))
    await acp.run_agent(editor_agent)
