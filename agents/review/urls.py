from django.urls import path

from agents.review import views

app_name = "trace"
urlpatterns = [
    path("traces/", views.run_list, name="list"),
    path("traces/completions/", views.completions, name="completions"),
    path("traces/views/", views.save_view, name="save_view"),
    path("traces/views/<int:pk>/delete/", views.delete_view, name="delete_view"),
    path("traces/<int:pk>/", views.run, name="run"),
    path("traces/<int:pk>/steps/", views.steps, name="steps"),
    path("traces/<int:pk>/steps/<int:number>/", views.step, name="step"),
    path("traces/<int:pk>/steps/<int:number>/<slug:name>/", views.payload, name="payload"),
]
