"""The addresses of A2A: of the default agent, and of each agent by name."""

from django.urls import path, re_path

from . import views

urlpatterns = [
    path("<slug:agent>/.well-known/agent-card.json", views.agent_card),
    # The rest is for the SDK's own routes.
    re_path("", views.protocol),
]
