"""The files of a message, for templates that have its row."""

from django import template

from chat import attachments
from chat.attachments.presentation import FileView
from chat.models import Message

register = template.Library()


@register.filter
def attached_files(message: Message) -> list[FileView]:
    """Return a message's files; most have none."""
    return [FileView(row) for row in attachments.sent_with(message.pk)]
