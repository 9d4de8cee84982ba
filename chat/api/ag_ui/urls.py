"""The address of AG-UI, one for each agent."""

from django.urls import path

from . import views

urlpatterns = [path("<slug:agent>", views.run_agent)]
