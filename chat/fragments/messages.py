"""HTML of a message and the run that answers it."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext

from agents.access.names import display_name
from agents.engine.text import truncate
from agents.web.presentation import RunView, run_fragments, text_url
from agents.web.presentation.element import Element
from agents.web.presentation.formats.dates import timestamp
from agents.web.presentation.formats.formatting import MAX_QUESTION_CHARS, count, is_scrollable
from agents.web.presentation.formats.icons import cached_url, icon
from chat import attachments
from chat.attachments.presentation import FileView
from chat.models import Message
from chat.sessions.branches import Fork

from . import page_digest

MAX_UNSCROLLED_CHARS = 240  # longer questions may need scrolling

# A page has many messages, and a template takes several times as long.
MESSAGE = Element("""\
<article id="message-{pk}" class="message" data-client-id="{client_id}">
  {question}
  <div class="message-tools">
    {fork}
    {edit}
    {delete}
  </div>
  {run}
  {versions}
</article>
""")
EDIT_LINK = Element(
    """\
<a class="icon-button" href="{url}" title="{title}" data-edit>\
{icon}<span class="visually-hidden">{label}</span></a>""",
    title=gettext_lazy("Edit"),
    icon=icon("rename"),
    label=gettext_lazy("Edit message"),
)
DELETE_LINK = Element(
    """\
<a class="icon-button" href="{url}" title="{title}" hx-get="{url}" \
hx-target="#message-deletion">{icon}<span class="visually-hidden">{label}</span></a>""",
    title=gettext_lazy("Delete"),
    icon=icon("delete"),
    label=gettext_lazy("Delete message"),
)
QUESTION = Element("""\
<div id="question-{pk}" class="question" data-edited="{edit_mark}">
    {author}
    {files}
    {text}
    {whole_text}
    <span class="sent-at">{sent_at}{edited}</span>
  </div>""")
OWN_HEADING = Element(
    '<h2 class="visually-hidden">{text}</h2>', text=gettext_lazy("Your message")
)
OTHERS_HEADING = """\
<h2 class="author"><span aria-hidden="true">{}</span>\
<span class="visually-hidden">{}</span></h2>"""
TEXT = Element("<p{scrolls}>{text}</p>")
FORK = Element('<div id="fork-{pk}" class="fork" data-fork="{fork}">{switch}</div>')
VERSIONS = Element('<div id="versions-{pk}" class="answer-versions">{switch}</div>')


@dataclass(frozen=True)
class MessageView:
    """A question and the run that answers it."""

    message: Message
    view: RunView | None
    may_write: bool = False
    fork: Fork | None = None
    html: SafeString = SafeString()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.message, name)

    @property
    def shown_text(self) -> str:
        """The text, shortened if it is long."""
        return truncate(self.message.text, MAX_QUESTION_CHARS)

    @property
    def text_left_out(self) -> bool:
        return len(self.message.text) > MAX_QUESTION_CHARS

    @property
    def text_href(self) -> str:
        """The address of the whole text; the run has it as it was before a correction."""
        run = self.message.run_id
        if run is None or self.message.edited_at is not None:
            return reverse("chat:text", args=[self.message.session_id, self.message.pk])
        return text_url(run, "question")

    @property
    def files(self) -> list[FileView]:
        """The attached files; most messages have none, and ask for none."""
        if not self.message.has_files:
            return []
        return [FileView(row) for row in attachments.sent_with(self.message.pk)]

    @property
    def edit_mark(self) -> str:
        return page_digest.edit_mark(self.message.edited_at)

    @classmethod
    def of(
        cls,
        message: Message,
        user: User,
        *,
        may_write: bool,
        is_discussed: bool,
        fork: Fork | None = None,
    ) -> "MessageView":
        """Return the view of a message for this user."""
        run = message.run
        if run is None:
            return cls(message, None, may_write, fork)
        view = RunView(run, viewer=user.pk, may_decide=may_write, is_discussed=is_discussed)
        return cls(message, view, may_write, fork)


def render_new_message(message: MessageView, user: User) -> SafeString:
    """Render a message at the end of the conversation, with its live run."""
    html = render_message(message, user)
    return format_html('<div hx-swap-oob="beforeend:#messages">{}</div>', html)


def render_message(message: MessageView, user: User) -> SafeString:
    """Render a message with what its user can do with it, and its run."""
    row = message.message
    edit = ""
    delete = ""
    message_url = f"{cached_url('chat:session', row.session_id)}messages/{row.pk}/"
    is_editable = message.may_write and row.author_id == user.pk
    is_embedded = message.view is not None and message.view.is_embedded
    if is_editable and not is_embedded:
        edit = EDIT_LINK(url=f"{message_url}edit/")
    if (is_editable or row.session.user_id == user.pk) and not is_embedded:
        delete = DELETE_LINK(url=f"{message_url}delete/")
    if message.view:
        run = run_fragments.run_section(message.view)
    else:
        sentence = _("No answer is saved for this message.")
        run = format_html('<p class="deleted-answer">{}</p>', sentence)
    return MESSAGE(
        pk=row.pk,
        client_id=row.client_id,
        question=render_question(message, user),
        fork=(
            FORK(pk=row.pk, fork=message.fork or "", switch="")
            if is_embedded
            else render_fork(row.session_id, row.pk, message.fork)
        ),
        edit=edit,
        delete=delete,
        run=run,
        versions="" if is_embedded else render_versions(row.session_id, row.pk, message.fork),
    )


def render_question(message: MessageView, user: User) -> SafeString:
    """Render what was asked, by whom and when."""
    row = message.message
    if row.author_id == user.pk:
        author = OWN_HEADING()
    else:
        name = display_name(row.author)
        author = format_html(OTHERS_HEADING, name, _("Message from %(name)s") % {"name": name})
    files = ""
    if row.has_files:
        files = render_to_string("chat/messages/_files.html", {"files": message.files})
    text = ""
    if row.text or not row.has_files:
        is_long = is_scrollable(row.text, MAX_UNSCROLLED_CHARS)
        text = TEXT(
            scrolls=mark_safe(' tabindex="0"') if is_long else "",
            text=f"{message.shown_text}…" if message.text_left_out else row.text,
        )
    whole_text = ""
    if message.text_left_out and row.run_id:
        whole_text = format_html(
            '<a class="whole-text" href="{}" target="_blank" rel="noopener" data-whole>{}</a>',
            message.text_href,
            _("Show all %(size)s characters") % {"size": count(len(row.text))},
        )
    edited = ""
    if row.edited_at:
        edited = format_html(
            ' · <span class="edit-mark" title="{}">{}</span>',
            _("The trace has the original text."),
            pgettext("message", "edited"),
        )
    return QUESTION(
        pk=row.pk,
        edit_mark=message.edit_mark,
        author=author,
        files=files,
        text=text,
        whole_text=whole_text,
        sent_at=timestamp(row.created_at, "clock"),
        edited=edited,
    )


def render_fork(session: int, message: int, fork: Fork | None) -> SafeString:
    """Render which version of a question this is; empty if there is only one."""
    switch = ""
    if fork and fork.question:
        context = {"pk": message, "session": session, "fork": fork.question, "of": "question"}
        switch = render_to_string("chat/messages/_fork.html", context)
    return FORK(pk=message, fork=fork or "", switch=switch)


def render_versions(session: int, message: int, fork: Fork | None) -> SafeString:
    """Render which version of the answer this is; empty if there is only one."""
    switch = ""
    if fork and fork.answer:
        context = {"pk": message, "session": session, "fork": fork.answer, "of": "answer"}
        switch = render_to_string("chat/messages/_fork.html", context)
    return VERSIONS(pk=message, switch=switch)


def render_removed(message: int) -> SafeString:
    """Render the removal of a message that isn't on the visible branch."""
    return format_html('<article id="message-{}" hx-swap-oob="delete"></article>', message)
