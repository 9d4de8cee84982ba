from django.urls import path

from agents.web.workflows import hooks, views

app_name = "workflows"
urlpatterns = [
    path("workflows/", views.listing, name="list"),
    path("workflows/new/", views.new, name="new"),
    path("workflows/check/", views.check, name="check"),
    path("workflows/schedules/<int:pk>/", views.schedule_page, name="schedule"),
    path("workflows/schedules/<int:pk>/answer/", views.answer_schedule, name="answer_schedule"),
    path("workflows/completions/", views.completions, name="completions"),
    path("hooks/<str:public_id>", hooks.receive, name="hook"),
    path("workflows/<int:pk>/", views.workflow_page, name="workflow"),
    path("workflows/<int:pk>/edit/", views.edit, name="edit"),
    path("workflows/<int:pk>/versions/<int:number>/", views.version_page, name="version"),
    path("workflows/<int:pk>/versions/<int:number>/restore/", views.restore, name="restore"),
]
