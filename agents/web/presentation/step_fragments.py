"""HTML of a step: its row, its details and the progress of its call."""

from dataclasses import replace

from django.template.loader import render_to_string
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agents.models import AgentStep

from . import StepView
from .element import OUT_OF_BAND, Element, join
from .formats.formatting import cost, count, duration, integer
from .formats.icons import icon, status_mark

MAX_RUN_BYTES = 200_000  # bytes of HTML
PLANNED_KINDS = {AgentStep.Kind.PLAN, AgentStep.Kind.TASK, AgentStep.Kind.EVALUATION}
RESULTLESS_STATUSES = {AgentStep.Status.UNSTARTED, AgentStep.Status.UNKNOWN}
IS_LIVE = mark_safe(" data-live")
IS_PLAIN = mark_safe(" data-plain")


def fits(html: str) -> bool:
    """Whether it fits on a page and in a frame."""
    return len(html) * 4 <= MAX_RUN_BYTES or len(html.encode()) <= MAX_RUN_BYTES


DURATION = Element('<span class="{name}">{text}</span>')
RUNNING_DURATION = Element('<span class="{name}" data-elapsed-ms="{elapsed}">{text}</span>')


def timed(name: str, milliseconds: float | None, *, is_running: bool) -> SafeString:
    """Render a duration, which the page counts up while it is running."""
    text = duration(milliseconds)
    if is_running and milliseconds is not None:
        return RUNNING_DURATION(name=name, elapsed=integer(milliseconds), text=text)
    return DURATION(name=name, text=text)


def step_row(step: StepView) -> SafeString:
    """Render a step's row, without its details if they don't fit in a frame."""
    html = _step_row(step)
    if step.is_brief or fits(html):
        return html
    return _step_row(replace(step, is_brief=True))


STEP_ROW = Element(
    """\
<li id="step-{pk}" class="step" data-kind="{kind}" data-status="{status}"\
{depth}{live}{heat}{plain}>
  <a class="number" href="{href}" title="{link_title}">#{number}</a>
  <details>
    <summary>
      <span class="kind">{kind_icon}<span>{kind_label}</span></span>
      <span class="intent">{intent}</span>
      {status_mark}
      {duration}
      <span class="tokens">{tokens}</span>
      <span class="cost">{cost}</span>
      {bar}
    </summary>
    <div class="detail">
      {detail}
    </div>
  </details>
  {below}
</li>
""",
    link_title=gettext_lazy("Link to this step"),
)
STEP_TOKENS = Element(
    '{count}<span class="visually-hidden"> {tokens}</span>', tokens=gettext_lazy("tokens")
)
STEP_BAR = Element("""\
<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">\
<rect class="track" width="100" height="8"/>\
<rect class="span" x="{start}" width="{width}" height="8"/>{waits}</svg>""")
STEP_WAIT = Element("""\
<rect class="bar-waits" x="{start}" width="{width}" height="8"/>\
<rect fill="url(#hatch-wide)" x="{start}" width="{width}" height="8"/>""")


def _step_row(step: StepView) -> SafeString:
    row = step.step
    heat = ""
    if step.bar:
        bar = render_to_string("trace/_bar.html", {"bar": step.bar})
        heat = format_html(' data-heat="{}"', step.bar.heat) if step.bar.heat else ""
    else:
        waits = (STEP_WAIT(start=start, width=width) for start, width in step.bar_waits)
        bar = STEP_BAR(start=step.bar_start, width=step.bar_width, waits=join(waits))
    return STEP_ROW(
        pk=step.pk,
        kind=step.kind,
        status=step.status,
        depth=format_html(' data-depth="{}"', row.depth) if row.depth else "",
        live=IS_LIVE if step.is_live else "",
        heat=heat,
        plain=IS_PLAIN if step.is_plain else "",
        href=step.href,
        number=row.number,
        kind_icon=icon(step.kind),
        kind_label=step.kind_label,
        intent=_step_intent(step),
        status_mark=status_mark(step.status, step.status_label),
        duration=timed(
            "duration",
            step.elapsed_ms if row.is_open else step.duration_ms,
            is_running=row.is_open,
        ),
        tokens=STEP_TOKENS(count=count(step.tokens)) if step.tokens else "",
        cost="" if row.cost is None else cost(row.cost),
        bar=bar,
        detail=_step_detail(step),
        below=_below_step(step),
    )


DECIDED_INTENT = Element("""\
<span class="clipped">{intent}</span> \
<span id="approval-{pk}" class="decided" data-verdict="{verdict}">{decision}</span>""")


def _step_intent(step: StepView) -> SafeString:
    """Render what a step does, after who does it and where its result comes from."""
    phrases: list[str] = []
    if step.thread:
        phrases.append(render_to_string("run/_comments.html#count", {"thread": step.thread}))
        phrases.append(" ")
    if step.speaker:
        speaker = '<span class="speaker" title="{}">{}</span> '
        phrases.append(format_html(speaker, step.full_path, step.speaker))
    if step.is_replayed:
        phrases.append(format_html('<span class="tag">{}</span> ', _("replayed")))
    if step.is_cached:
        phrases.append(format_html('<span class="tag">{}</span> ', _("from cache")))
    phrases.append(step.intent)
    if step.bar and step.bar.parallel_count > 1:
        title = _("%(count)s calls in the same turn") % {"count": step.bar.parallel_count}
        markup = ' <span class="beside" title="{}">∥ {}</span>'
        phrases.append(format_html(markup, title, step.bar.parallel_count))
    if step.approval and step.approval.is_in_words:
        return DECIDED_INTENT(
            intent=join(phrases),
            pk=str(step.approval.pk),
            verdict=step.approval.verdict,
            decision=step.approval.decision,
        )
    return join(phrases)


PAIR = Element('<div class="pair">{figures}</div>')
INPUT = Element(
    """\
<figure class="said"><figcaption>{label} <code>{action}</code></figcaption>\
<pre tabindex="0">{text}</pre></figure>""",
    label=gettext_lazy("Input"),
)
FIGURE_MARKUP = """\
<figure class="{kind}"><figcaption>{icon}{label}</figcaption>\
<pre tabindex="0">{text}</pre></figure>"""
OBSERVATION = Element(
    FIGURE_MARKUP, kind="seen", icon=icon("observation"), label=gettext_lazy("Observation")
)
REQUEST = Element(FIGURE_MARKUP, kind="said", icon="", label=gettext_lazy("Request"))
RESULT = Element(FIGURE_MARKUP, kind="got", icon="", label=gettext_lazy("Result"))


def _step_detail(step: StepView) -> SafeString:
    """Render what an open row shows."""
    link = '<p class="more"><a href="{}">{}</a></p>'
    if step.is_brief:
        return format_html(link, step.detail_href, _("Show details"))
    context = {"step": step, "root": step.run_href}
    elements = []
    if step.thought:
        elements.append(format_html('<p class="thought">{}</p>', step.thought_excerpt))
    if step.approval and step.approval.is_in_words and step.approval.is_detailed:
        decision = {"approval": step.approval}
        elements.append(render_to_string("run/_decision.html", decision))
    figures = []
    result = f"{step.result_text}…" if step.left_out else step.result_text
    if step.kind == AgentStep.Kind.TOOL:
        figures.append(INPUT(action=step.step.action, text=step.input_text))
        if step.status not in RESULTLESS_STATUSES or step.result_text:
            is_open = step.step.is_open
            figures.append(OBSERVATION(text=_("No result yet.") if is_open else result))
    elif step.kind in PLANNED_KINDS:
        elements.append(render_to_string("run/_planned.html", context))
    else:
        if step.request_text and not step.is_trace:
            figures.append(REQUEST(text=step.request_text))
        if result:
            figures.append(RESULT(text=result))
    if figures:
        elements.append(PAIR(figures=join(figures)))
    if step.is_trace and step.kind == AgentStep.Kind.TOOL and step.step.attachments:
        elements.append(render_to_string("run/_attachments.html", context))
    if step.step.notes:
        if step.short_notes:
            notes = format_html_join("", "<li>{}</li>", ((note,) for note in step.short_notes))
            elements.append(format_html('<ul class="notes">{}</ul>', notes))
        elements.append(render_to_string("run/_samples.html", context))
    attempts = step.step.attempts
    if attempts > 1:
        text = ngettext("%(attempts)s attempt", "%(attempts)s attempts", attempts)
        elements.append(
            format_html('<p class="attempts">{}</p>', text % {"attempts": attempts})
        )
    if step.is_cut:
        elements.append(format_html(link, step.detail_href, _("Show all")))
    if step.is_trace:
        text = _("Request, cost and events")
        if step.left_out:
            text = _("%(count)s more characters, request, cost and events") % {
                "count": count(step.left_out)
            }
        detail_link = '<p class="more"><a href="{}" data-detail>{}</a></p>'
        elements.append(format_html(detail_link, step.detail_href, text))
    return join(elements)


LIVE_THOUGHT = Element("""\
<div class="live"><p id="step-{pk}-live" class="live-thought">{text}</p></div>""")


def _below_step(step: StepView) -> SafeString:
    """Render what even a closed row shows: files, comments, questions and progress."""
    elements = []
    if step.step.attachments and not step.is_trace:
        context = {"step": step, "root": step.run_href}
        elements.append(render_to_string("run/_attachments.html", context))
    if step.thread:
        elements.append(render_to_string("run/_comments.html", {"thread": step.thread}))
    if step.approval and not step.approval.is_in_words:
        approval = {"approval": step.approval}
        elements.append(render_to_string("run/_step_approval.html", approval))
    if step.live_note:
        elements.append(format_html('<p class="live-note">{}</p>', step.live_note))
    if step.step.is_open and step.kind == AgentStep.Kind.TOOL:
        elements.append(call_progress(step))
    if step.is_live:
        elements.append(LIVE_THOUGHT(pk=step.pk, text=step.live_text))
    return join(elements)


PROGRESS = Element("""\
<div id="step-{pk}-progress" class="call-progress"{oob}>{content}</div>""")
PROGRESS_BAR = Element("""\
<label for="step-{pk}-bar">{label}</label>{percent}\
<progress id="step-{pk}-bar"{value}></progress>""")


def call_progress(step: StepView, *, is_oob: bool = False) -> SafeString:
    """Render the progress of a running call; empty if it reports none."""
    content = ""
    if step.progress:
        percent = step.progress.percent
        percent_text = ""
        value = ""
        if percent is not None:
            text = _("%(percent)s%%") % {"percent": percent}
            percent_text = format_html('<span class="percent">{}</span>', text)
            value = format_html(' value="{}" max="100"', percent)
        content = PROGRESS_BAR(
            pk=step.pk, label=step.progress.label, percent=percent_text, value=value
        )
    return PROGRESS(pk=step.pk, oob=OUT_OF_BAND if is_oob else "", content=content)
