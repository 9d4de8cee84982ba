"""HTML of a run in a chat that is embedded in another site: its answer and what it is based on.

Visitors see no steps, results, names of models or errors; and nothing links into the product.
"""

from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.models import Run

from . import RunView
from .answer_fragments import copy_button
from .element import Element, join
from .evidence import NumberedSource
from .evidence_fragments import evidence_tips
from .formats.icons import icon
from .step_fragments import IS_LIVE

RUN = Element("""\
<section id="run-{pk}" class="run" data-status="{status}"{live} aria-label="{label}">
  {head}
  <div id="answer-{pk}" class="answer prose" hx-disable>\
<div id="answer-{pk}-frozen" class="frozen">{answer}</div>\
<div id="answer-{pk}-tail" class="tail">{tail}</div></div>
  {sources}
  {ending}
  {actions}
</section>
""")
HEAD = Element('<p id="run-{pk}-head" class="run-line">{content}</p>')
ACTIVITY = Element(
    """\
<span class="status" data-status="running">{icon}\
<span id="run-{pk}-activity">{text}</span></span>\
""",
    icon=icon("running"),
)
WAITING = Element(
    '<span class="status" data-status="waiting">{icon}{text}</span>', icon=icon("waiting")
)
SOURCES = Element(
    """\
<section class="embed-sources" aria-label="{label}"><h3>{label}</h3>{items}</section>
<div class="evidence-bar">{tips}</div>""",
    label=gettext_lazy("Sources"),
)
SOURCE = Element("""\
<details id="{id}"><summary><span class="evidence-number">{number}</span><b>{title}</b> \
<span>{place}</span></summary><p>{text}</p></details>""")
ENDING = Element('<p class="embed-ending" data-status="{status}">{text}</p>')
ENDINGS = {
    Run.Status.FAILED: gettext_lazy("Something went wrong. Try again."),
    Run.Status.BLOCKED: gettext_lazy("This can’t be answered here."),
    Run.Status.STOPPED: gettext_lazy("Stopped."),
    Run.Status.INTERRUPTED: gettext_lazy("The answer was interrupted. Try again."),
}
ACTIONS = Element(
    """\
<div class="actions"><span>{copy}<button type="button" class="quiet" data-again>\
{again_icon}{again}</button></span>{rating}</div>""",
    again_icon=icon("again"),
    again=gettext_lazy("Regenerate"),
)
RATING = Element(
    """\
<div id="rating-{pk}" class="rating" data-rated="{rated}">
  <span class="thumbs" role="group" aria-label="{label}">
    <button type="button" id="good-{pk}" class="quiet thumb" data-rate="{good_value}" \
aria-pressed="{good_pressed}" title="{good}">{good_icon}\
<span class="visually-hidden">{good}</span></button>
    <button type="button" id="bad-{pk}" class="quiet thumb" data-rate="{bad_value}" \
aria-pressed="{bad_pressed}" title="{bad}">{bad_icon}\
<span class="visually-hidden">{bad}</span></button>
  </span>
</div>""",
    label=gettext_lazy("Rate this answer"),
    good=gettext_lazy("Good answer"),
    good_icon=icon("good"),
    bad=gettext_lazy("Bad answer"),
    bad_icon=icon("bad"),
)


def run_section(view: RunView) -> SafeString:
    """Render the whole run."""
    run = view.run
    ending = ENDINGS.get(Run.Status(run.status))
    return RUN(
        pk=view.pk,
        status=run.status,
        live=IS_LIVE if run.is_live else "",
        label=_("Answer"),
        head=run_head(view, view.current_activity if run.is_live else ""),
        answer=view.frozen_html,
        tail=view.tail,
        sources=_sources(view),
        ending=ENDING(status=run.status, text=ending) if ending else "",
        actions="" if run.is_live else _actions(view),
    )


def run_head(view: RunView, activity: str) -> SafeString:
    """Render what the run does or did, as far as the embedded chat says so."""
    content: str = ""
    if view.run.is_waiting:
        content = WAITING(text=_("Waiting for approval. The answer will be here."))
    elif view.run.is_live:
        content = ACTIVITY(pk=view.pk, text=activity)
    elif view.says_activity:
        content = format_html_join(" · ", "<span>{}</span>", ((p,) for p in view.activity))
    return HEAD(pk=view.pk, content=content)


def rating(view: RunView) -> SafeString:
    """Render the visitor's rating and its buttons."""
    saved = view.rating
    is_good = saved is not None and saved.is_good
    is_bad = saved is not None and not saved.is_good
    return RATING(
        pk=view.pk,
        rated="good" if is_good else "bad" if is_bad else "",
        good_value="none" if is_good else "good",
        good_pressed="true" if is_good else "false",
        bad_value="none" if is_bad else "bad",
        bad_pressed="true" if is_bad else "false",
    )


def _sources(view: RunView) -> SafeString:
    """Render the cited passages, which open in place: visitors can't open documents."""
    if not view.has_evidence or not view.evidence.listed:
        return SafeString()
    items = join(_source(item, view.evidence.documents) for item in view.evidence.listed)
    return SOURCES(items=items, tips=evidence_tips(view.evidence, view))


def _source(item: NumberedSource, address: str) -> SafeString:
    source = item.source
    return SOURCE(
        id=f"{address.removeprefix('#')}{source.number}/",
        number=item.number,
        title=source.title,
        place=source.place,
        text=source.excerpt,
    )


def _actions(view: RunView) -> SafeString:
    return ACTIONS(copy=copy_button(view), rating=rating(view))
