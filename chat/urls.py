"""The URLs of chats, messages, projects, prompts, imports and exports."""

from django.urls import path

from chat import views
from chat.embedding import pages as embedding_pages
from chat.live import run_news
from chat.messages import limit_notes
from chat.messages.pages import choice_pages, dictation_pages, message_pages, upload_pages
from chat.people_data import account_pages
from chat.projects import project_pages
from chat.prompts import prompt_pages
from chat.sessions.listing import list_pages, palette
from chat.sharing import member_pages, people_suggestions, public_pages
from chat.transfer.exports import export_pages
from chat.transfer.imports import import_pages

app_name = "chat"
urlpatterns = [
    path("", views.new, name="new"),
    path("embed.js", embedding_pages.script, name="embed_script"),
    path("embed/<str:public_id>/", embedding_pages.frame, name="embed"),
    path("chat/", views.start, name="start"),
    path("chat/sessions/", list_pages.session_list, name="sessions"),
    path("chat/search/", list_pages.find, name="search"),
    path("chat/selected/", list_pages.act, name="act"),
    path("chat/selected/delete/", list_pages.delete_selected, name="delete_selected"),
    path("chat/folders/", list_pages.folders, name="folders"),
    path("chat/folders/<int:pk>/", list_pages.change_folder, name="change_folder"),
    path("chat/folders/<int:pk>/delete/", list_pages.delete_folder, name="delete_folder"),
    path("chat/news/", run_news.poll, name="news"),
    path("palette/", palette.palette, name="palette"),
    path("chat/choices/", choice_pages.choices, name="choices"),
    path("chat/default-agent/", choice_pages.default_agent, name="default_agent"),
    path("chat/limits/", limit_notes.limit_note, name="limits"),
    path("chat/files/", upload_pages.uploads, name="uploads"),
    path("chat/files/<int:pk>/", upload_pages.file, name="file"),
    path("chat/files/<int:pk>/delete/", upload_pages.remove, name="remove_upload"),
    path("chat/files/<int:pk>/retry/", upload_pages.retry, name="retry_upload"),
    path("chat/files/<int:pk>/reading/", upload_pages.choose_reading, name="choose_reading"),
    path("chat/files/<int:pk>/dictate/", dictation_pages.dictate, name="dictate"),
    path("chat/<int:pk>/", views.session, name="session"),
    path("chat/<int:pk>/messages/", views.send, name="send"),
    path("chat/<int:pk>/messages/<int:message>/edit/", message_pages.edit, name="edit"),
    path(
        "chat/<int:pk>/messages/<int:message>/regenerate/",
        message_pages.regenerate,
        name="regenerate",
    ),
    path(
        "chat/<int:pk>/messages/<int:message>/show/",
        message_pages.show_branch,
        name="show_branch",
    ),
    path(
        "chat/<int:pk>/messages/<int:message>/delete/",
        message_pages.delete,
        name="delete_message",
    ),
    path("chat/<int:pk>/messages/<int:message>/text/", message_pages.message_text, name="text"),
    path("chat/<int:pk>/stop/", views.stop, name="stop"),
    path("chat/<int:pk>/queue/<int:message>/now/", views.send_now, name="send_now"),
    path("chat/<int:pk>/queue/<int:message>/withdraw/", views.withdraw, name="withdraw"),
    path("workflows/<int:pk>/start/", views.start_workflow, name="start_workflow"),
    path("chat/<int:pk>/rename/", views.rename, name="rename"),
    path("chat/<int:pk>/delete/", list_pages.delete, name="delete"),
    path("chat/<int:pk>/keep/", views.keep, name="keep"),
    path("chat/<int:pk>/people/", member_pages.people, name="people"),
    path("chat/<int:pk>/people/<int:user>/remove/", member_pages.remove, name="remove"),
    path("chat/<int:pk>/people/suggestions/", people_suggestions.suggest, name="suggest_users"),
    path("chat/<int:pk>/leave/", member_pages.leave, name="leave"),
    path("chat/<int:pk>/links/", member_pages.invite, name="invite"),
    path(
        "chat/<int:pk>/links/<int:link>/withdraw/", member_pages.withdraw, name="withdraw_link"
    ),
    path("chat/<int:pk>/public/", public_pages.create, name="publish"),
    path("chat/<int:pk>/public/<int:link>/update/", public_pages.update, name="republish"),
    path("chat/<int:pk>/public/<int:link>/revoke/", public_pages.revoke, name="unpublish"),
    path("chat/<int:pk>/export/<slug:ending>/", export_pages.export, name="export"),
    path("chat/<int:pk>/print/", export_pages.print_page, name="print"),
    path("chat/export/", export_pages.export_several, name="export_several"),
    path("chats/import/", import_pages.upload, name="import"),
    path("chats/import/<int:pk>/", import_pages.show, name="import_job"),
    path("chats/import/<int:pk>/start/", import_pages.start, name="import_start"),
    path("chats/import/<int:pk>/cancel/", import_pages.cancel, name="import_cancel"),
    path("public/<str:token>/", public_pages.public_chat, name="public"),
    path("prompts/", prompt_pages.library, name="prompts"),
    path("prompts/new/", prompt_pages.create, name="new_prompt"),
    path("prompts/new/from-text/", prompt_pages.create_from_text, name="prompt_from_text"),
    path("prompts/completions/", prompt_pages.completions, name="prompt_completions"),
    path("prompts/<int:pk>/", prompt_pages.edit, name="edit_prompt"),
    path("prompts/<int:pk>/parts/", prompt_pages.parts, name="prompt_parts"),
    path("prompts/<int:pk>/duplicate/", prompt_pages.duplicate, name="duplicate_prompt"),
    path("prompts/<int:pk>/delete/", prompt_pages.delete, name="delete_prompt"),
    path("projects/", project_pages.project_list, name="projects"),
    path("projects/new/", project_pages.create, name="new_project"),
    path("projects/<int:pk>/", project_pages.home, name="project"),
    path("projects/<int:pk>/edit/", project_pages.edit, name="edit_project"),
    path("projects/<int:pk>/delete/", project_pages.delete, name="delete_project"),
    path("projects/<int:pk>/members/", project_pages.add_member, name="add_project_member"),
    path(
        "projects/<int:pk>/members/suggestions/",
        project_pages.suggest_members,
        name="suggest_project_members",
    ),
    path(
        "projects/<int:pk>/members/<int:user>/remove/",
        project_pages.remove_member,
        name="remove_project_member",
    ),
    path("projects/<int:pk>/leave/", project_pages.leave, name="leave_project"),
    path("projects/<int:pk>/memory/", project_pages.add_memory, name="add_project_memory"),
    path("chat/<int:pk>/project/", project_pages.move_chat, name="move_to_project"),
    path("join/<str:token>/", member_pages.join, name="join"),
    path("account/data/", account_pages.data_page, name="data"),
    path("account/data/download/", account_pages.download_data, name="take_data"),
    path("account/erase/", account_pages.erase, name="erase_account"),
]
