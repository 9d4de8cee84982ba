from django.urls import path

from agents.review import views

app_name = "trace"
urlpatterns = [
    path("traces/", views.run_list, name="list"),
    path("traces/completions/", views.completions, name="completions"),
    path("traces/views/", views.save_view, name="save_view"),
    path("traces/views/<int:pk>/delete/", views.delete_view, name="delete_view"),
    path("traces/<int:pk>/", views.run, name="run"),
    path("traces/<int:pk>/rating/", views.rate, name="rate"),
    path("traces/<int:pk>/notes/", views.annotate, name="annotate"),
    path("traces/<int:pk>/notes/<int:note>/", views.note, name="note"),
    path("traces/<int:pk>/labels/", views.label, name="label"),
    path("traces/<int:pk>/flag/", views.flag, name="flag"),
    path("traces/<int:pk>/assignee/", views.assign, name="assign"),
    path("traces/<int:pk>/verdict/", views.decide, name="decide"),
    path("traces/<int:pk>/correction/", views.correct, name="correct"),
    path("traces/<int:pk>/example/", views.keep, name="keep"),
    path("traces/<int:pk>/steps/<int:step>/review/", views.step_review, name="step_review"),
    path("review/", views.review_queue, name="review"),
    path("review/open/", views.open_reviews, name="open_reviews"),
    path("traces/<int:pk>/steps/", views.steps, name="steps"),
    path("traces/<int:pk>/steps/<int:number>/", views.step, name="step"),
    path("traces/<int:pk>/steps/<int:number>/<slug:name>/", views.payload, name="payload"),
    path("traces/<int:pk>/unmask/", views.unmask, name="unmask"),
    path("traces/<int:pk>/export.json", views.export_json, name="export_json"),
    path("traces/<int:pk>/export.md", views.export_markdown, name="export_markdown"),
    path("traces/<int:pk>/share/", views.share, name="share"),
    path("traces/<int:pk>/share/<int:link>/revoke/", views.revoke, name="revoke"),
    path("shared/<str:token>/", views.shared, name="shared"),
]
