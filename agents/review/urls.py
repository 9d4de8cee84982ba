from django.urls import path

from agents.review import views

app_name = "trace"
urlpatterns = [
    path("traces/", views.run_list, name="list"),
    path("traces/<int:pk>/", views.run, name="run"),
    path("traces/compare/", views.find_comparison, name="find_comparison"),
    path("traces/<int:pk>/compare/", views.compare_with, name="compare_with"),
    path("traces/<int:pk>/compare/<int:other>/", views.compare, name="compare"),
    path("traces/<int:pk>/again/<int:step>/", views.again, name="again"),
    path("traces/<int:pk>/rerun/<int:step>/", views.rerun, name="rerun"),
    path("traces/<int:pk>/stop/", views.stop, name="stop"),
    path("traces/<int:pk>/steps/", views.steps, name="steps"),
    path("traces/<int:pk>/steps/<int:number>/", views.step, name="step"),
    path("traces/<int:pk>/steps/<int:number>/<slug:name>/", views.payload, name="payload"),
]
