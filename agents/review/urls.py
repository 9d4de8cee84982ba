from django.urls import path

from agents.review import views

app_name = "trace"
urlpatterns = [
    path("traces/", views.run_list, name="list"),
    path("traces/completions/", views.completions, name="completions"),
    path("traces/views/", views.save_view, name="save_view"),
    path("traces/views/<int:pk>/delete/", views.delete_view, name="delete_view"),
    path("traces/<int:pk>/", views.run, name="run"),
]
