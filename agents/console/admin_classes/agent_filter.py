"""A filter of lists by agent, which names only agents that the reader reviews."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from agents.models import ReviewScope


class ReviewedAgentFilter(admin.RelatedFieldListFilter):
    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> list[Any]:
        agents = ReviewScope.objects.reviewed_agents(request.user).order_by("name")
        return [(agent.pk, str(agent)) for agent in agents]
