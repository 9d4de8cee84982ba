"""Tools that run without asking, because a user allowed them and the administrator lets users.

A grant is checked when the call is due. It is bound to the user who asked, the agent, the
tool as it was defined, and perhaps a chat. Only what a user decides about a displayed request
creates one; a model, another member or a changed tool can't.
"""

import json
from collections.abc import Collection
from hashlib import sha256

from django.contrib.auth.models import User
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.access import audit
from agents.db import database
from agents.engine.loop import Capability, Grants, StandingApproval, effect, fingerprint
from agents.engine.tool import Tool
from agents.models import Approval, Run, ToolGrant, ToolRegistration

CHAT_TOPIC_PREFIX = "chat."
IN_CHAT = "chat"
FOR_USER = "user"
# Only the approval of a tool's call can stand; plans, questions and the like are each new.
ELIGIBLE_REASONS = {Approval.Why.AGENT, Approval.Why.TOOL}


class GrantRefused(Exception):
    """Raised when a tool can't be allowed permanently; the user sees the message."""


def grants(run: Run, agent_name: str, tools: Collection[str]) -> list[Capability]:
    """Return the grants for calls of these tools; a run that is repeated has none."""
    is_repeated = run.is_rerun and not run.is_continuation
    if is_repeated or run.is_experiment_run or not _is_eligible_run(run):
        return []

    async def check(tool: Tool) -> StandingApproval | None:
        if tool.name not in tools:
            return None
        return await database.run(
            _use_grant, run.pk, agent_name, tool.name, fingerprint(tool), effect(tool)
        )

    return [Grants(check)]


def scopes(approval: Approval, viewer: int | None) -> tuple[str, ...]:
    """Return where this viewer can allow the tool from now on."""
    tool = ToolRegistration.objects.filter(name=approval.tool).first()
    # The effect that was displayed with the request.
    steps = approval.run.steps.filter(number=approval.step)
    displayed_effect = steps.values_list("effect", flat=True).first() or ""
    return scopes_of_call(approval, viewer, tool, displayed_effect)


def scopes_of_call(
    approval: Approval, viewer: int | None, tool: ToolRegistration | None, displayed_effect: str
) -> tuple[str, ...]:
    """Return the scopes for a request whose tool and effect are known."""
    run = approval.run
    if viewer is None or viewer != run.user_id or approval.why not in ELIGIBLE_REASONS:
        return ()
    return _permitted_scopes(tool, displayed_effect) if _is_eligible_run(run) else ()


def create(user: User, approval: Approval, tool_fingerprint: str, scope: str) -> ToolGrant:
    """Allow the tool of this request, with the fingerprint it had when it was displayed.

    Call it in the transaction of the decision.
    """
    if scope not in scopes(approval, user.pk):
        raise GrantRefused(_("You can't always allow this tool. Approve only this call."))
    tool = ToolRegistration.objects.select_related("server").get(name=approval.tool)
    columns = {"digest": _definition_digest(tool, tool_fingerprint), "used_at": None}
    grant, _created = ToolGrant.objects.update_or_create(
        columns,
        user=user,
        agent_name=approval.agent_name,
        tool=tool,
        topic=approval.run.topic if scope == IN_CHAT else "",
    )
    audit.record(
        user, audit.TOOL_ALLOWED, approval.run, tool=tool.name, scope=scope, grant=grant.pk
    )
    return grant


def revoke(user: User, pk: int) -> None:
    """Delete the user's grant; the next call asks again. Raises ToolGrant.DoesNotExist."""
    grant = ToolGrant.objects.select_related("tool").get(pk=pk, user=user)
    audit.record(user, audit.TOOL_REVOKED, grant, tool=grant.tool.name, scope=grant.scope)
    grant.delete()


def _use_grant(
    run_pk: int, agent_name: str, name: str, tool_fingerprint: str, declared_effect: str
) -> StandingApproval | None:
    """Return the grant that approves a call now, and record that it did."""
    run = Run.objects.select_related("user").filter(pk=run_pk).first()
    if run is None or run.user is None or not run.user.is_active or not _is_eligible_run(run):
        return None
    tool = ToolRegistration.objects.select_related("server").filter(name=name).first()
    permitted = _permitted_scopes(tool, declared_effect)
    if tool is None or not permitted:
        return None
    topics = Q(topic=run.topic) | Q(topic="") if FOR_USER in permitted else Q(topic=run.topic)
    matching = ToolGrant.objects.filter(
        topics,
        user=run.user,
        agent_name=agent_name,
        tool=tool,
        digest=_definition_digest(tool, tool_fingerprint),
    )
    grant = matching.order_by("-topic").first()
    if grant is None:
        return None
    details = {"tool": name, "scope": grant.scope, "grant": grant.pk}
    try:
        audit.record(run.user, audit.TOOL_AUTO_APPROVED, run, **details)
    except audit.NotRecorded:
        return None  # what can't be recorded is asked about
    ToolGrant.objects.filter(pk=grant.pk).update(used_at=timezone.now())
    by = run.user.pk
    by_name = run.user.get_username()
    return StandingApproval(by=by, by_name=by_name, grant=grant.pk, scope=grant.scope)


def _is_eligible_run(run: Run) -> bool:
    """Whether grants apply: in a chat, not in reruns, whose writes are always asked about."""
    is_new = run.origin_id is None and run.origin_step is None
    is_chat = run.topic.startswith(CHAT_TOPIC_PREFIX) and run.workflow_id is None
    return is_new and is_chat and run.user_id is not None


def _permitted_scopes(tool: ToolRegistration | None, declared_effect: str) -> tuple[str, ...]:
    """Return what the administrator permits; irreversible calls at most within one chat."""
    if tool is None or not tool.enabled or tool.pending is not None or tool.is_gone:
        return ()
    match tool.always_allow:
        case ToolRegistration.AlwaysAllow.CHAT:
            return (IN_CHAT,)
        case ToolRegistration.AlwaysAllow.USER:
            is_final = declared_effect == ToolRegistration.Effect.AT_MOST_ONCE
            return (IN_CHAT,) if is_final else (IN_CHAT, FOR_USER)
    return ()


def _definition_digest(tool: ToolRegistration, tool_fingerprint: str) -> str:
    """Return a digest of what the tool is and where it leads."""
    identity = [
        tool.pk,
        tool.source,
        tool.definition,
        tool.endpoint,
        tool.method,
        tool.effect,
    ]
    if server := tool.server:
        identity += [server.pk, server.transport, server.url, server.command, server.args]
    identity.append(tool_fingerprint)
    return sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
