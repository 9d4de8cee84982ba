"""HTML of the chat page, one element at a time."""

from .elements import (
    ComposerChrome,
    SessionChrome,
    render_composer,
    render_deleted,
    render_earlier_link,
    render_edit_problem,
    render_markdown,
    render_notice,
    render_people,
)
from .messages import (
    MessageView,
    render_fork,
    render_message,
    render_new_message,
    render_question,
    render_removed,
    render_versions,
)

__all__ = [
    "ComposerChrome",
    "MessageView",
    "SessionChrome",
    "render_composer",
    "render_deleted",
    "render_earlier_link",
    "render_edit_problem",
    "render_fork",
    "render_markdown",
    "render_message",
    "render_new_message",
    "render_notice",
    "render_people",
    "render_question",
    "render_removed",
    "render_versions",
]
