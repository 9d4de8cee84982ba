"""HTML around an answer: its correction, its rating, and what can be done with it."""

from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.db.installation import default_models

from . import RunView
from .element import OUT_OF_BAND, Element, join
from .evidence_fragments import unsupported_button
from .formats.formatting import count
from .formats.icons import cached_url, icon
from .formats.links import text_url
from .run_view.next_steps import NextStep

ANSWER_MORE = Element('<p id="answer-{pk}-more" class="answer-more">{content}</p>')


def answer_more(run: int, shown_chars: int, size: int, *, is_live: bool) -> SafeString:
    """Render how much of a long answer the page shows, and where all of it is."""
    content = ""
    if size > shown_chars:
        counts = {"shown": count(shown_chars), "size": count(size)}
        if is_live:
            text = _("Showing the first %(shown)s characters; %(size)s so far.") % counts
        else:
            text = _("Showing the first %(shown)s of %(size)s characters.") % counts
        content = format_html(
            '{} <a href="{}" target="_blank" rel="noopener">{}</a>',
            text,
            text_url(run, "answer"),
            _("Show full answer"),
        )
    return ANSWER_MORE(pk=run, content=content)


CORRECTED = Element('<p id="corrected-{pk}" class="corrected"{oob}>{link}</p>')


def corrected_note(view: RunView, *, is_oob: bool = False) -> SafeString:
    """Render above an answer that a reviewer has corrected it."""
    link = ""
    if view.correction:
        text = _("Corrected (see below)")
        link = format_html('<a href="#correction-{}">{}</a>', view.pk, text)
    return CORRECTED(pk=view.pk, oob=OUT_OF_BAND if is_oob else "", link=link)


CORRECTION = Element("""\
<div id="correction-{pk}" class="correction"{oob} hx-disable>{content}</div>""")


def correction_section(
    view: RunView, *, is_oob: bool = False, is_unsigned: bool = False
) -> SafeString:
    """Render a reviewer's corrected answer; empty if there is none."""
    content = ""
    if view.correction:
        context = {"correction": view.correction, "is_unsigned": is_unsigned}
        content = render_to_string("run/_correction.html", context)
    return CORRECTION(pk=view.pk, oob=OUT_OF_BAND if is_oob else "", content=content)


ANSWER_SOURCE = Element('<template id="answer-{pk}-source">{text}</template>\n    {button}')
COPY_BUTTON = Element(
    """\
<button type="button" class="quiet" data-{attribute}="{source}">{icon}\
<span class="before">{copy}</span><span class="after">{copied}</span></button>""",
    icon=icon("copy"),
    copy=gettext_lazy("Copy"),
    copied=gettext_lazy("Copied"),
)


def copy_button(view: RunView) -> SafeString:
    """Render a button that copies the answer; a long one is read from its URL."""
    if not view.run.answer:
        return SafeString()
    if view.answer_left_out:
        return COPY_BUTTON(attribute="copy-from", source=view.answer_href)
    button = COPY_BUTTON(attribute="copy", source=f"answer-{view.pk}-source")
    return ANSWER_SOURCE(pk=view.pk, text=view.run.answer, button=button)


REGENERATE_BUTTON = Element(
    '<button type="button" class="quiet" data-regenerate>{icon}{label}</button>',
    icon=icon("again"),
    label=gettext_lazy("Regenerate"),
)
RUN_AGAIN_BUTTON = Element(
    '<button type="button" class="quiet" data-regenerate>{icon}{label}</button>',
    icon=icon("again"),
    label=gettext_lazy("Run again"),
)
REGENERATE_MENU = Element(
    """\
<button type="button" class="quiet icon-only" title="{label}" data-regenerate-menu \
data-agent="{agent}" data-model="{model}" aria-haspopup="menu" hidden>\
{icon}<span class="visually-hidden">{label}</span></button>""",
    icon=icon("chevron"),
    label=gettext_lazy("Regenerate with another agent or model"),
)

OTHER_MODEL_MENU = Element(
    """\
<button type="button" class="quiet" data-regenerate-menu data-agent="{agent}" \
data-model="{model}" aria-haspopup="menu" hidden>{label}{icon}</button>""",
    icon=icon("chevron"),
    label=gettext_lazy("Ask with another model"),
)


def _regenerate_buttons(view: RunView) -> SafeString:
    """Render the buttons that ask the question again."""
    buttons = []
    # A run that ended early says above what helps, and often that is one of these.
    is_above = NextStep.TRY_AGAIN in view.next_steps
    if view.can_ask_again and not is_above:
        buttons.append(RUN_AGAIN_BUTTON())
    elif view.may_decide and not is_above:
        buttons.append(REGENERATE_BUTTON())
    if view.may_decide and NextStep.OTHER_MODEL not in view.next_steps:
        menu = OTHER_MODEL_MENU if is_above else REGENERATE_MENU
        buttons.append(menu(agent=view.run.agent_name, model=view.run.model))
    return join(buttons)


MORE_MENU = Element(
    """\
<button type="button" class="quiet icon-only" title="{label}" popovertarget="more-{pk}">\
{icon}<span class="visually-hidden">{label}</span></button>\
<div id="more-{pk}" class="more-menu" popover>{items}</div>""",
    icon=icon("more"),
    label=gettext_lazy("More"),
)
MENU_ITEM = """\
<button type="button" {attributes}>{{icon}}<span>{{label}}</span></button>"""
COPY_TEXT_ITEM = Element(
    MENU_ITEM.format(attributes="data-copy-text"),
    icon=icon("text"),
    label=gettext_lazy("Copy as plain text"),
)
QUOTE_ITEM = Element(
    MENU_ITEM.format(attributes="data-quote"),
    icon=icon("quote"),
    label=gettext_lazy("Quote in my message"),
)
SPEAK_ITEM = Element(
    MENU_ITEM.format(
        attributes='data-speak aria-pressed="false" data-stop="{stop}"{voice} hidden'
    ),
    icon=icon("speak"),
    label=gettext_lazy("Read aloud"),
    stop=gettext_lazy("Stop reading"),
)
SAVE_PROMPT_ITEM = Element(
    MENU_ITEM.format(attributes="data-save-prompt"),
    icon=icon("prompt"),
    label=gettext_lazy("Save question as prompt"),
)
TRACE_ITEM = Element(
    '<a href="{href}">{icon}<span>{label}</span></a>',
    icon=icon("trace"),
    label=gettext_lazy("Open trace"),
)


def _more_menu(view: RunView) -> SafeString:
    """Render what can be done with an answer now and then."""
    run = view.run
    items = []
    if run.answer and not view.answer_left_out:
        items.append(COPY_TEXT_ITEM())
    if run.answer and view.may_decide:
        items.append(QUOTE_ITEM())
    if run.answer:
        voice = ""
        if default_models.SPEECH.model:
            voice = format_html(' data-voice="{}"', reverse("runs:speech", args=[run.pk]))
        items.append(SPEAK_ITEM(voice=voice))
    if view.may_decide and view.is_own:
        items.append(SAVE_PROMPT_ITEM())
    if view.has_evidence:
        items.append(unsupported_button(view.evidence))
    items.append(TRACE_ITEM(href=view.href))
    return MORE_MENU(pk=view.pk, items=join(items))


RATING = Element(
    """\
<div id="rating-{pk}" class="rating" data-rated="{rated}">
  <span class="thumbs" role="group" aria-label="{label}">
    <button id="good-{pk}" class="quiet thumb" form="decide" formaction="{url}" name="rating" \
value="{good_value}" aria-pressed="{good_pressed}" title="{good}" hx-post="{url}" \
hx-target="#rating-{pk}" hx-sync="#rating-{pk}:queue last">\
{good_icon}<span class="visually-hidden">{good}</span></button>
    <button id="bad-{pk}" class="quiet thumb" form="decide" formaction="{url}" name="rating" \
value="{bad_value}" aria-pressed="{bad_pressed}" title="{bad}" hx-post="{url}" \
hx-target="#rating-{pk}" hx-sync="#rating-{pk}:queue last">\
{bad_icon}<span class="visually-hidden">{bad}</span></button>
  </span>
  {reasons}
  {flagged}
  <span class="problem" role="alert" data-failed="{failed}">{problem}</span>
</div>""",
    label=gettext_lazy("Rate this answer"),
    good=gettext_lazy("Good answer"),
    good_icon=icon("good"),
    bad=gettext_lazy("Bad answer"),
    bad_icon=icon("bad"),
    failed=gettext_lazy("The server didn’t respond, so this wasn’t saved. Try again."),
)


def rating(view: RunView, *, problem: str = "", is_asking: bool = False) -> SafeString:
    """Render the user's rating and its buttons; `is_asking` leaves the reasons open."""
    saved = view.rating
    is_good = saved is not None and saved.is_good
    is_bad = saved is not None and not saved.is_good
    reasons = ""
    if is_bad:
        context = {"view": view, "rating": saved, "is_asking": is_asking}
        reasons = render_to_string("run/_rating_reasons.html", context)
    flagged = ""
    if view.is_flagged:
        sentence = _("A reviewer will look at this.")
        flagged = format_html('<span class="flagged">{}{}</span>', icon("flag"), sentence)
    return RATING(
        pk=view.pk,
        rated="good" if is_good else "bad" if is_bad else "",
        url=cached_url("trace:rate", view.run.pk),
        good_value="none" if is_good else "good",
        good_pressed="true" if is_good else "false",
        bad_value="none" if is_bad else "bad",
        bad_pressed="true" if is_bad else "false",
        reasons=reasons,
        flagged=flagged,
        problem=problem,
    )


ACTIONS = Element("""\
<div class="actions"><span class="needs-js">
    {copy}
    {regenerate}</span>
    {rating}
    <span class="needs-js">{more}</span>
  </div>""")


def answer_actions(view: RunView) -> SafeString:
    """Render what can be done with an answer that is complete."""
    return ACTIONS(
        copy=copy_button(view),
        regenerate=_regenerate_buttons(view),
        rating=rating(view) if view.is_own else "",
        more=_more_menu(view),
    )
