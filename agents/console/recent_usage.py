"""Recent usage of agents: last change, and how their runs went."""

from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from django.contrib.admin.views.main import ChangeList
from django.db.models import Count, F, Max, Q
from django.http import HttpRequest
from django.utils import timezone

from agents.models import Agent, AgentDraft, AgentVersion, Run
from agents.models.runs import DRAFT_TOPIC_PREFIX

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

RECENT_PERIOD = timedelta(days=7)
FAILED_STATUSES = [Run.Status.FAILED, Run.Status.INTERRUPTED]


class AgentFigures(TypedDict):
    """Attributes that are added to an agent in the list."""

    has_tools: int
    used: dict[str, Any]
    newest: AgentVersion | None
    has_draft: bool


ListedAgent: TypeAlias = "WithAnnotations[Agent, AgentFigures]"


class UsageChangeList(ChangeList):
    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        attach_usage(self.result_list)


def attach_usage(agents: Iterable[ListedAgent]) -> None:
    """Attach usage figures and the current version to each agent."""
    pks = [agent.pk for agent in agents]
    figures = {row["agent"]: row for row in _usage_rows(pks)}
    newest = AgentVersion.objects.filter(agent__in=pks, number=F("agent__version"))
    versions = {version.agent_id: version for version in newest.select_related("author")}
    rows = AgentDraft.objects.filter(agent__in=pks).values_list("agent", "values")
    drafts = {agent for agent, values in rows if values}
    for agent in agents:
        agent.has_draft = agent.pk in drafts
        agent.used = figures.get(agent.pk, {})
        agent.newest = versions.get(agent.pk)


def _usage_rows(agents: list[int]) -> Iterable[Any]:
    recent = Q(started_at__gte=timezone.now() - RECENT_PERIOD)
    runs = Run.objects.filter(agent__in=agents).exclude(topic__startswith=DRAFT_TOPIC_PREFIX)
    return (
        runs.order_by()
        .values("agent")
        .annotate(
            last=Max("started_at"),
            lately=Count("pk", filter=recent),
            failed=Count("pk", filter=recent & Q(status__in=FAILED_STATUSES)),
        )
    )
