from django.urls import path

from chat import account, people, views

app_name = "chat"
urlpatterns = [
    path("", views.new, name="new"),
    path("chat/", views.start, name="start"),
    path("chat/sessions/", views.session_list, name="sessions"),
    path("chat/<int:pk>/", views.session, name="session"),
    path("chat/<int:pk>/messages/", views.send, name="send"),
    path("chat/<int:pk>/stop/", views.stop, name="stop"),
    path("chat/<int:pk>/queue/<int:message>/now/", views.send_now, name="send_now"),
    path("chat/<int:pk>/queue/<int:message>/withdraw/", views.withdraw, name="withdraw"),
    path("workflows/<int:pk>/start/", views.start_workflow, name="start_workflow"),
    path("chat/<int:pk>/rename/", views.rename, name="rename"),
    path("chat/<int:pk>/delete/", views.delete, name="delete"),
    path("chat/<int:pk>/people/", people.people, name="people"),
    path("chat/<int:pk>/people/<int:user>/remove/", people.remove, name="remove"),
    path("chat/<int:pk>/leave/", people.leave, name="leave"),
    path("chat/<int:pk>/links/", people.invite, name="invite"),
    path("chat/<int:pk>/links/<int:link>/withdraw/", people.withdraw, name="withdraw_link"),
    path("join/<str:token>/", people.join, name="join"),
    path("account/data/", account.data, name="data"),
    path("account/data/download/", account.take, name="take_data"),
    path("account/erase/", account.erase, name="erase_account"),
]
