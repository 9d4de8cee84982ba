"""Versions of agents, and the version a run started with."""

import re
from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Prefetch
from django.utils.translation import gettext as _

from agents.models import Agent, AgentVersion, Run
from agents.models.catalog.agents import MAX_NAME_CHARS

from . import agent_spec

COPY_SUFFIX = "-copy"


def save(agent: Agent, author: User | None, note: str = "") -> AgentVersion | None:
    """Save the agent's current rows as its newest version; None if nothing changed."""
    return next(iter(save_all([agent], author, note)), None)


@transaction.atomic
def save_all(
    agents: Iterable[Agent], author: User | None, note: str = ""
) -> list[AgentVersion]:
    """Save the agents' current rows as their newest versions; return the new ones."""
    by_pk = {agent.pk: agent for agent in agents}
    newest_first = AgentVersion.objects.order_by("-number")
    newest = Prefetch("versions", newest_first[:1], to_attr="newest_versions")
    rows: Any = Agent.objects.select_for_update().filter(pk__in=by_pk).order_by("pk")
    rows = rows.prefetch_related(newest)
    snapshots = agent_spec.describe_all(rows)
    new: list[AgentVersion] = []
    for row in rows:
        snapshot = snapshots[row.pk]
        last = next(iter(row.newest_versions), None)
        # Not by the agent's own number, which may be stale after a concurrent save.
        row.version = last.number if last else 0
        if last is None or last.snapshot != snapshot:
            row.version += 1
            columns = {"snapshot": snapshot, "author": author, "note": note}
            new.append(AgentVersion(agent=row, number=row.version, **columns))
        by_pk[row.pk].version = row.version
    Agent.objects.bulk_update(rows, ["version"])
    return AgentVersion.objects.bulk_create(new)


def save_first() -> None:
    """Save a first version of agents that have none, so that a first change can be undone."""
    save_all(Agent.objects.filter(version=0), None)


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
    # An unused name, shortened if needed and numbered for several copies.
    names = Agent.objects.filter(name__contains=COPY_SUFFIX).values_list("name", flat=True)
    used_names = set(names)
    stem = re.sub(rf"{COPY_SUFFIX}(-\d+)?$", "", agent.name)
    suffix = COPY_SUFFIX
    number = 1
    while (name := f"{stem[: MAX_NAME_CHARS - len(suffix)]}{suffix}") in used_names:
        number += 1
        suffix = f"{COPY_SUFFIX}-{number}"
    cloned = Agent(name=name, enabled=False)
    spec = agent_spec.describe(agent) | {"name": cloned.name}
    cloned.save()
    agent_spec.restore(cloned, spec)
    save(cloned, author, _("Copied from %(name)s.") % {"name": agent.name})
    return cloned
