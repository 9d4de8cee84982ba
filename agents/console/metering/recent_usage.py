"""Recent usage of agents: last change, and how their runs went."""

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias, TypedDict

from django.contrib.admin.views.main import ChangeList
from django.contrib.auth.models import User
from django.db.models import F, Max
from django.http import HttpRequest
from django.utils import timezone

from agents.access.requests import signed_in_user
from agents.metering.figures import catch_up
from agents.metering.figures.query import By, FiguresQuery
from agents.metering.figures.selection import Selection, Viewer, runs_url
from agents.metering.figures.totals import Totals
from agents.metering.figures.windows import last_days
from agents.models import Agent, AgentDraft, AgentVersion, Run
from agents.models.runs.runs import DRAFT_TOPIC_PREFIX

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

RECENT_DAYS = 7


class AgentFigures(TypedDict):
    """Attributes that are added to an agent in the list."""

    has_tools: int
    last_run: datetime | None
    totals: Totals  # of the last seven days
    runs_url: str
    newest: AgentVersion | None
    has_draft: bool


ListedAgent: TypeAlias = "WithAnnotations[Agent, AgentFigures]"


class UsageChangeList(ChangeList):
    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        attach_usage(self.result_list, signed_in_user(request))


def attach_usage(agents: Iterable[ListedAgent], user: User) -> None:
    """Attach usage figures and the current version to each agent."""
    pks = [agent.pk for agent in agents]
    catch_up.catch_up_for_page()
    viewer = Viewer(user)
    window = last_days(RECENT_DAYS, timezone.now())
    totals_by_name = FiguresQuery(viewer, window, Selection()).split(By.AGENT)
    runs = Run.objects.filter(agent__in=pks).exclude(topic__startswith=DRAFT_TOPIC_PREFIX)
    last_runs = dict(runs.order_by().values_list("agent").annotate(Max("started_at")))
    newest = AgentVersion.objects.filter(agent__in=pks, number=F("agent__version"))
    versions = {version.agent_id: version for version in newest.select_related("author")}
    rows = AgentDraft.objects.filter(agent__in=pks).values_list("agent", "values")
    drafts = {agent for agent, values in rows if values}
    for agent in agents:
        agent.has_draft = agent.pk in drafts
        agent.last_run = last_runs.get(agent.pk)
        agent.totals = totals_by_name.get((agent.name,), Totals())
        agent.runs_url = runs_url(viewer, window, Selection(agent=agent.name))
        agent.newest = versions.get(agent.pk)
