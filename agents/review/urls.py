from django.urls import path

from agents.review import views

app_name = "trace"
urlpatterns = [
    path("traces/", views.run_list, name="list"),
    path("traces/<int:pk>/", views.run, name="run"),
    path("traces/<int:pk>/replay/", views.replayed, name="replay"),
    path("traces/<int:pk>/replay/scene/", views.scene, name="scene"),
    path("traces/<int:pk>/steps/", views.steps, name="steps"),
    path("traces/<int:pk>/steps/<int:number>/", views.step, name="step"),
    path("traces/<int:pk>/steps/<int:number>/<slug:name>/", views.payload, name="payload"),
]
