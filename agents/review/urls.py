from django.urls import path

from agents.review import views

app_name = "trace"
urlpatterns = [
    path("traces/", views.run_list, name="list"),
    path("traces/<int:pk>/", views.run, name="run"),
    path("traces/<int:pk>/replay/", views.replayed, name="replay"),
    path("traces/<int:pk>/replay/scene/", views.scene, name="scene"),
]
