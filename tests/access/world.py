"""A chat, a run and everything related, and users of all roles."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group, User
from django.contrib.auth.tokens import default_token_generator
from django.test import AsyncClient
from django.utils import timezone
from django.utils.http import urlsafe_base64_encode

from agents import runs
from agents.access import api_keys
from agents.accounts.models import Passkey, Visit
from agents.accounts.users import invitations
from agents.accounts.users import roles as roles_of_users
from agents.console.system import logo_files
from agents.db.installation import branding
from agents.insight.alerts.models import AlertChannel
from agents.knowledge import files
from agents.knowledge.files import store
from agents.models import (
    Agent,
    AgentStep,
    Approval,
    Collection,
    Document,
    Embed,
    Experience,
    GuardrailHit,
    GuardrailPattern,
    McpServer,
    Memory,
    OAuthApp,
    ReviewScope,
    Run,
    RunAttachment,
    RunEvent,
    Schedule,
    StoredFile,
    ToolGrant,
    ToolRegistration,
    Workflow,
    WorkflowVersion,
)
from agents.models.catalog.rights import Role
from agents.review.models import Comment, Note, SavedView, ShareLink
from agents.review.sharing import token_digest
from agents.web.branding import colors
from chat.models import (
    Attachment,
    ChatImport,
    ChatSession,
    Folder,
    Invitation,
    Member,
    Message,
    Prompt,
    PublicLink,
)
from chat.projects import membership
from chat.sharing import snapshots
from tests.pictures import png

MISSING = 987_654_321
TOKEN = "a-token-that-was-given-out"
# All roles. From `stranger` on they have nothing to do with the chat.
ROLES = (
    "nobody",
    "owner",
    "writer",
    "reader",
    "stranger",
    "reviewer",
    "scoped",
    "staff",
    "root",
)
WORKFLOW = "steps:\n  - name: sum\n    tool: calculator\n    input: {expression: 6 * 7}\n"


@dataclass
class World:
    """Rows, and `clients`: browsers by role."""

    chat: ChatSession
    run: Run
    ids: dict[str, Any]
    clients: dict[str, AsyncClient]

    def address(self, route: str, *, missing: bool = False) -> str:
        """Return a route's URL, with an existing or a missing row."""

        def value(found: re.Match[str]) -> str:
            so_far = route[: found.end()]
            if missing and found.start() == route.find("<"):
                return str(MISSING)
            return str(self.ids.get(so_far, self.ids.get(found[1])))

        return "/" + re.sub(r"<\w+:(\w+)>", value, route)


def _branding() -> dict[str, Any]:
    """Give the installation a logo."""
    logo = logo_files.Logo(content=png(), ending="webp")
    name = logo_files.save(branding.LOGO, logo)
    return {
        "branding/logo/<str:name>": name,
        "revision": colors.REVISION,
        "color": "2563eb",
        "branding/banner/<slug:version>": "0123456789ab",
    }


def create_world(agent: Agent, accounts: Any, roles: Iterable[str] = ROLES) -> World:
    """Create a world in which these roles are signed in."""
    people = {role: accounts.create_user(role) for role in ROLES[1:-1]}
    people["root"] = accounts.create_superuser("root")
    for role in ("reviewer", "scoped"):
        reviewing = roles_of_users.role_group(Role.REVIEWER).permissions.all()
        people[role].user_permissions.set(reviewing)
    ReviewScope.objects.create(user=people["scoped"])  # for no agent
    people["staff"].is_staff = True
    people["staff"].save()
    chat, run, ids = _conversation(agent, people)
    ids |= _of_people(people["owner"], accounts.create_user("invited")) | _branding()
    server = McpServer.objects.create(name="club", url="http://127.0.0.1:9/", sign_in="shared")
    ids["mcp/<int:pk>"] = server.pk
    return World(chat, run, ids, {role: _client(people.get(role)) for role in roles})


def _of_people(owner: Any, invited: Any) -> dict:
    elsewhere = AsyncClient()
    elsewhere.force_login(owner)
    session = elsewhere.cookies["sessionid"].value
    visit = Visit.objects.create(user=owner, session_id=session, way="password")
    key = Passkey.objects.create(user=owner, name="phone", key_id="a2V5", public_key="p")
    app = OAuthApp.objects.create(client_id="app", name="Notes", source="registered")
    expires_at = timezone.now() + timedelta(hours=1)
    api_keys.create(owner, "Notes", ["ask"], app=app, expires_at=expires_at)
    api_key, _secret = api_keys.create(owner, "CI", ["ask", "read"])
    return {
        "account/apps/<int:pk>": app.pk,
        "account/api-keys/<int:pk>": api_key.pk,
        "account/sessions/<int:pk>": visit.pk,
        "account/passkeys/<int:pk>": key.pk,
        "notifications/<int:pk>": owner.notifications.create(event="test").pk,
        "uid": urlsafe_base64_encode(str(invited.pk).encode()),
        "invite/<str:token>": _invitation(),
        "welcome/<str:uid>/<str:token>": default_token_generator.make_token(invited),
    }


def _invitation() -> str:
    """Return the token of a new invitation."""
    inviter = User.objects.get(username="root")
    return invitations.create(inviter, invitations.Terms(role=Role.PERSON))[1]


def _client(user: Any) -> AsyncClient:
    client = AsyncClient(raise_request_exception=False)
    if user is not None:
        client.force_login(user)
    return client


def _conversation(agent: Agent, people: dict[str, Any]) -> tuple[ChatSession, Run, dict]:
    owner, now = people["owner"], timezone.now()
    chat = ChatSession.objects.create(user=owner, title="Sums", is_shared=True)
    for role in ("owner", "writer", "reader"):
        place = {"topic": chat.topic, "may_write": role != "reader"}
        Member.objects.create(session=chat, user=people[role], **place)
    run = Run.objects.create(
        user=owner, agent=agent, agent_name=agent.name, topic=chat.topic, model="demo",
        query="6 * 7", answer="42", status="completed", started_at=now, ended_at=now,
        files=[{"kind": "document", "name": "tea.txt", "mime_type": "text/plain", "size": 3}],
    )  # fmt: skip
    about = {"run": run, "number": 1, "kind": "tool", "status": "done", "started_at": now}
    found = {"number": 1, "id": "tea", "title": "Tea", "digest": "ab"}
    AgentStep.objects.create(
        **about, ended_at=now, first_seq=2, observation="[1] Tea\nGreen tea", sources=[found]
    )
    file = {"digest": "ab" * 32, "mime_type": "image/png", "size": len(png())}
    stored = store.save(png(), name="tea.png", owner=None)
    RunAttachment.objects.create(run=run, file=stored, **file)
    words = {"content": "42", "step": 1}
    RunEvent.objects.create(run=run, seq=1, type="delta", time=now, data=words)
    said = Message.objects.create(session=chat, author=owner, run=run, text="6", client_id="a")
    return chat, run, _ids(chat, run, said, people, now + timedelta(hours=1))


def _embed(agent: Agent) -> str:
    group = Group.objects.create(name="Visitors: Tea")
    site = {"name": "Tea", "origins": "https://www.example.com"}
    return Embed.objects.create(**site, agent=agent, group=group).public_id


def _library(people: dict[str, Any]) -> dict:
    """A collection of the owner, shared with a writer and a reader."""
    mine = Collection.objects.create(name="Tea", owner=people["owner"])
    for role in ("writer", "reader"):
        mine.shares.create(user=people[role], may_edit=role == "writer")
    file = files.save(b"Green tea", name="tea.txt", owner=None)
    document = Document.objects.create(
        collection=mine, owner=people["owner"], title="Tea", source="tea.txt", file=file,
        mime_type="text/plain", status="failed",
    )  # fmt: skip
    document.parts.create(number=1, kind="text", text="Green tea")
    shared = Collection.objects.create(name="Handbook")
    shared.shares.create(user=people["writer"], may_edit=True)
    source = shared.sources.create(kind="folder", name="Shelf", place={"path": "/shelf"})
    return {
        "library/sources/<int:pk>": source.pk,
        "action": "pause",
        "library/<int:pk>": mine.pk,
        "library/documents/<int:pk>": document.pk,
        "library/sitemaps/<int:pk>": mine.sitemaps.create(url="http://127.0.0.1/s.xml").pk,
    } | _unsent_file(people["owner"], file)


def _unsent_file(owner: Any, file: StoredFile) -> dict:
    about = {"name": "tea.txt", "mime_type": "text/plain", "kind": "document"}
    unsent = Attachment.objects.create(user=owner, file=file, **about)
    return {"chat/files/<int:pk>": unsent.pk}


def _ids(chat: ChatSession, run: Run, said: Message, people: dict[str, Any], soon: Any) -> dict:
    owner = people["owner"]
    queued = Message.objects.create(
        session=chat, author=owner, text="7", client_id="b", place=1
    )
    waiting = runs.prepare(query="7 * 7", topic="elsewhere", user=owner)
    Run.objects.filter(pk=waiting.pk).update(status="waiting")
    asked = Approval.objects.create(
        run=waiting, step=1, call_id="c", agent_name="helper", tool="calculator",
        arguments="{}", digest="d", asked_at=soon,
    )  # fmt: skip
    workflow = Workflow.objects.create(name="sums")
    WorkflowVersion.objects.create(workflow=workflow, number=1, text=WORKFLOW, author=owner)
    times = {"workflow": workflow, "user": owner, "cron": "0 9 * * *"}
    schedule = Schedule.objects.create(**times, enabled=False)
    link = Invitation.objects.create(session=chat, digest=token_digest(TOKEN), expires_at=soon)
    share = ShareLink.objects.create(
        run=run, digest=token_digest(TOKEN), level="person", made_by=owner, expires_at=soon
    )
    public = PublicLink.objects.create(
        session=chat, digest=token_digest(TOKEN), level="answers", made_by=owner,
        snapshot=snapshots.build(chat, "answers", owner), updated_at=soon, expires_at=soon,
    )  # fmt: skip
    calculator, _is_new = ToolRegistration.objects.get_or_create(name="calculator")
    grant = ToolGrant.objects.create(
        user=owner, agent_name="helper", tool=calculator, digest="d", topic=""
    )
    job = ChatImport.objects.create(user=owner, files=["a.json"], status="ready")
    note = Note.objects.create(run=run, step=1, text="Hm.", author=people["reviewer"])
    pattern, _is_new = GuardrailPattern.objects.get_or_create(name="Sums", enabled=False)
    about = {"pattern": pattern, "agent_name": "helper", "stage": "input", "action": "warn"}
    hit = GuardrailHit.objects.create(run=run, step=1, at=soon, **about)
    comment = Comment.objects.create(run=run, step=1, text="Hm.", author=owner)
    view = SavedView.objects.create(user=owner, name="mine", query="status:failed")
    folder = Folder.objects.create(user=owner, name="Tea")
    project = membership.create(owner, "Launch")
    for role in ("writer", "reader"):
        right = "write" if role == "writer" else "read"
        membership.add(project, role, right, owner)
    memory = Memory.objects.create(user=owner, text="I like tea", digest="d")
    learned = Experience.objects.create(
        user=owner,
        agent=run.agent,
        run=run,
        kind="correction",
        question="?",
        text="Yes.",
        digest="e",
    )
    prompt = Prompt.objects.create(user=owner, name="p", title="P", text="p", sharing="groups")
    prompt.groups.add(Group.objects.get_or_create(name="Team")[0])
    people["reader"].groups.add(*prompt.groups.all())
    webhook = AlertChannel.objects.create(name=None, kind="webhook", owner=owner)
    delivery = webhook.deliveries.create(event="test", status="sent", next_at=soon)
    return {
        **_library(people),
        "account/webhooks/<int:pk>": webhook.pk,
        "account/webhooks/<int:pk>/deliveries/<int:number>": delivery.pk,
        "chat/<int:pk>": chat.pk,
        "embed/<str:public_id>": _embed(run.agent),
        "prompts/<int:pk>": prompt.pk,
        "chat/folders/<int:pk>": folder.pk,
        "account/memory/<int:pk>": memory.pk,
        "account/learning/<int:pk>": learned.pk,
        "projects/<int:pk>": project.pk,
        "traces/<int:pk>": run.pk,
        "api/runs/<int:pk>": run.pk,
        "workflows/<int:pk>": workflow.pk,
        "workflows/schedules/<int:pk>": schedule.pk,
        "approvals/<int:pk>": asked.pk,
        "approvals/permissions/<int:pk>": grant.pk,
        "traces/views/<int:pk>": view.pk,
        "traces/<int:pk>/share/<int:link>": share.pk,
        "chat/<int:pk>/links/<int:link>": link.pk,
        "chat/<int:pk>/public/<int:link>": public.pk,
        "chats/import/<int:pk>": job.pk,
        "message": queued.pk,
        "chat/<int:pk>/messages/<int:message>": said.pk,
        "user": people["reader"].pk,
        "note": note.pk,
        "hit": hit.pk,
        "comment": comment.pk,
        "second_pk": run.pk,
        "step": 1,
        "number": 1,
        "name": "result",
        "file_format": "csv",
        "traces/<int:pk>/text/<slug:name>": "answer",
        "digest": "ab" * 32,
        "public_id": "unknown",
        "token": TOKEN,
        "ending": "json",
    }
