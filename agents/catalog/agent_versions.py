"""Versions of agents, and the version a run started with."""

import re

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from agents.models import Agent, AgentVersion, Run
from agents.models.catalog import MAX_NAME_CHARS

from . import agent_spec

COPY_SUFFIX = "-copy"


@transaction.atomic
def save(agent: Agent, author: User | None, note: str = "") -> AgentVersion | None:
    """Save the agent's current rows as its newest version; None if nothing changed."""
    now = Agent.objects.select_for_update().get(pk=agent.pk)
    newest, snapshot = now.versions.first(), agent_spec.describe(now)
    is_known = newest is not None and newest.snapshot == snapshot
    # Not by the agent's own number, which may be stale after a concurrent save.
    agent.version = (newest.number if newest else 0) + (not is_known)
    Agent.objects.filter(pk=agent.pk).update(version=agent.version)
    if is_known:
        return None
    about = {"snapshot": snapshot, "author": author, "note": note}
    return now.versions.create(number=agent.version, **about)


def save_first() -> None:
    """Save a first version of agents that have none, so that a first change can be undone."""
    for agent in Agent.objects.filter(version=0):
        save(agent, None)


def record(run: Run) -> None:
    """Record the agent's version in a run.

    The agent may have none yet, or a newer one than when the run was created.
    """
    agent = run.agent
    if agent is None or run.pk is None:
        return
    if not agent.version:
        save(agent, None)
    if run.agent_version != agent.version:
        run.agent_version = agent.version
        Run.objects.filter(pk=run.pk).update(agent_version=agent.version)


@transaction.atomic
def restore(agent: Agent, number: int, author: User) -> list[str]:
    """Save an old version as the newest; return what isn't available any more."""
    old = agent.versions.get(number=number)
    troubles = agent_spec.restore(agent, old.snapshot)
    save(agent, author, _("Restored version %(number)d.") % {"number": number})
    return troubles


@transaction.atomic
def clone(agent: Agent, author: User) -> Agent:
    """Copy an agent under another name, disabled at first."""
    other = Agent(name=_free_name(agent.name), enabled=False)
    description = agent_spec.describe(agent) | {"name": other.name}
    other.save()
    agent_spec.restore(other, description)
    save(other, author, _("Copied from %(name)s.") % {"name": agent.name})
    return other


def _free_name(name: str) -> str:
    """Return an unused name, shortened if needed and numbered for several copies."""
    bare = re.sub(rf"{COPY_SUFFIX}(-\d+)?$", "", name)
    taken = set(Agent.objects.filter(name__contains=COPY_SUFFIX).values_list("name", flat=True))
    number = 1
    while (found := _copy_name(bare, number)) in taken:
        number += 1
    return found


def _copy_name(name: str, number: int) -> str:
    end = COPY_SUFFIX if number == 1 else f"{COPY_SUFFIX}-{number}"
    return f"{name[: MAX_NAME_CHARS - len(end)]}{end}"
