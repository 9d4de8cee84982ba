from django.urls import path

from agents import api, views

app_name = "trace"
urlpatterns = [
    path("traces/", views.run_list, name="list"),
    path("traces/<int:pk>/", views.run, name="run"),
    path("approvals/", views.approvals, name="approvals"),
    path("approvals/link/", views.approvals_link, name="approvals_link"),
    path("approvals/<int:pk>/", views.decide, name="decide"),
    path("api/runs/<int:pk>/events/", api.events, name="events"),
]
