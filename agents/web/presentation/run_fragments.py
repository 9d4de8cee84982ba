"""HTML of a run, one element at a time, for its page and its live frames alike.

A header or a step's row is rendered with every change of a run, and a template takes many times
as long as an `Element`. What only some runs have is a template.
"""

from dataclasses import replace

from django.conf import settings
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agents.models import AgentStep, Run

from . import BARE, BRIEF, FULL, PlanView, RunView, StepView
from .element import Element, join
from .evidence_fragments import evidence_bar, evidence_sources, unsupported_button
from .formats.formatting import cost, count, duration, integer
from .formats.icons import cached_url, icon, status_mark
from .formats.links import text_url, trace_url
from .run_view.next_steps import NextStep

MAX_RUN_BYTES = 200_000  # bytes of HTML
PLANNED_KINDS = {AgentStep.Kind.PLAN, AgentStep.Kind.TASK, AgentStep.Kind.EVALUATION}
RESULTLESS_STATUSES = {AgentStep.Status.UNSTARTED, AgentStep.Status.UNKNOWN}
IS_LIVE = mark_safe(" data-live")
IS_PLAIN = mark_safe(" data-plain")
OUT_OF_BAND = mark_safe(' hx-swap-oob="true"')


def fits(html: str) -> bool:
    """Whether it fits on a page and in a frame."""
    return len(html) * 4 <= MAX_RUN_BYTES or len(html.encode()) <= MAX_RUN_BYTES


def run_section(view: RunView) -> SafeString:
    """Render the whole run as far as it fits: pages and frames have limits."""
    for size in (FULL, BRIEF, BARE):
        sized_view = view if size == FULL else view.of(size)
        if view.place == "trace":
            html = render_to_string("trace/_run.html", {"view": sized_view})
        else:
            html = chat_run(sized_view)
        if fits(html):
            break
    return html


CHAT_RUN = Element("""\
<section id="run-{pk}" class="run" data-status="{status}"{live} aria-label="{label}">
  {steps}
  {facts}
  {files}
  {corrected}
  {context_lines}
  <div id="answer-{pk}" class="answer {answer_class}" hx-disable>\
<div id="answer-{pk}-frozen" class="frozen">{answer}</div>\
<div id="answer-{pk}-tail" class="tail">{tail}</div></div>
  {answer_more}
  {evidence}
  {correction}
  {below}
</section>
""")


def chat_run(view: RunView) -> SafeString:
    """Render the whole run for a chat, however long it is."""
    run = view.run
    if run.output is None:
        answer = view.frozen_html
    elif view.output_view:
        answer = render_to_string("run/_output.html", {"output": view.output_view})
    else:
        answer = format_html('<pre class="output-json" tabindex="0">{}</pre>', view.output_text)
    context_lines = ""
    if view.context_lines:
        lines = ((line.href, line.sentence) for line in view.context_lines)
        items = format_html_join("", '<li><a href="{}">{}</a></li>', lines)
        context_lines = format_html('<ul class="context-lines">{}</ul>', items)
    evidence = ""
    if view.has_evidence:
        evidence = evidence_bar(view.evidence, view)
    elif view.output_evidence:
        evidence = evidence_sources(view.output_evidence, view)
    return CHAT_RUN(
        pk=view.pk,
        status=run.status,
        live=IS_LIVE if run.is_live else "",
        label=_("Run %(number)s") % {"number": view.pk},
        steps=_run_steps(view),
        facts=run_facts(view),
        files=_run_files(view),
        corrected=corrected_note(view),
        context_lines=context_lines,
        answer_class="prose" if run.output is None else "output",
        answer=answer,
        tail=view.tail,
        answer_more=answer_more(
            run.pk, view.answer_shown, view.answer_size, is_live=run.is_live
        ),
        evidence=evidence,
        correction=correction_section(view),
        below=_below_answer(view),
    )


ACTIONS = Element("""\
<div class="actions"><span class="needs-js">
    {copy}
    {regenerate}</span>
    {rating}
    <span class="needs-js">{more}</span>
  </div>""")
EXAMPLES = Element('<p class="offered needs-js">{buttons}</p>')
EXAMPLE = Element('<button type="button" class="button" data-say="{text}">{text}</button>')


def _below_answer(view: RunView) -> SafeString:
    """Render how an answer came to be, and what can be done with it."""
    context = {"view": view}
    elements = []
    if view.panel:
        elements.append(render_to_string("run/_panel.html", {**context, "panel": view.panel}))
    if view.findings:
        elements.append(render_to_string("run/_findings.html", context))
    if view.sentence:
        elements.append(render_to_string("run/_outcome.html", context))
    if view.examples:
        buttons = join(EXAMPLE(text=example) for example in view.examples)
        elements.append(EXAMPLES(buttons=buttons))
    if view.memory_cards:
        elements.append(render_to_string("people/_memory_cards.html", context))
    if view.effects:
        effects = {**context, "effects": view.effects}
        elements.append(render_to_string("run/_effects.html", effects))
    if not view.run.is_live:
        actions = ACTIONS(
            copy=copy_button(view),
            regenerate=_regenerate_buttons(view),
            rating=rating(view) if view.is_own else "",
            more=_more_menu(view),
        )
        elements.append(actions)
    if view.is_brief:
        elements.append(render_to_string("run/_too_long.html", context))
    if view.is_discussed and not view.run.is_live:
        elements.append(render_to_string("run/_comments.html", {"thread": view.thread()}))
    return join(elements)


# Open while the run works, and folded to its first line when the answer is there.
RUN_STEPS = Element(
    """\
<details class="run-steps"{open}>
    <summary class="run-line">{head}{icon}</summary>
    {plan}
    <ol id="run-{pk}-steps" class="steps">{rows}</ol>
    {folded}
  </details>""",
    icon=icon("forward"),
)
PLAIN_RUN = Element('<p class="run-line">{head}</p>')
IS_OPEN = mark_safe(" open")


def _run_steps(view: RunView) -> SafeString:
    """Render a run's line with its steps; an answer without any has only the line."""
    if view.is_plain:
        return PLAIN_RUN(head=run_head(view))
    return RUN_STEPS(
        pk=view.pk,
        open=IS_OPEN if view.run.is_live else "",
        head=run_head(view),
        plan=plan_section(view, view.plan),
        rows=join(step_row(step) for step in view.first_steps),
        folded=folded_note(view.run.pk, view.folded_count),
    )


RUN_HEAD = Element('<span id="run-{pk}-head" class="run-head">{phrases}</span>')
SEPARATOR = mark_safe('<span class="between" aria-hidden="true"> · </span>')


def run_head(view: RunView) -> SafeString:
    """Render what a run is doing or did, and for how long."""
    run = view.run
    is_waiting = view.is_waiting_now
    phrases = []
    if run.is_live or run.status != Run.Status.COMPLETED:
        phrases.append(status_mark(run.status, view.status_label))
    if run.is_live and view.active_agent:
        phrases.append(format_html('<span class="agent">{}</span>', view.active_agent))
    elif view.is_plain:
        phrases.append(format_html('<span class="agent">{}</span>', run.agent_name))
    elif not run.is_live:
        phrases += [format_html("<span>{}</span>", phrase) for phrase in view.activity]
    elapsed = _duration(
        "figure duration",
        view.elapsed_ms if run.is_live else view.duration_ms,
        is_running=run.is_live and not is_waiting,
    )
    phrases.append(elapsed)
    if is_waiting:
        waited = _duration("duration", view.waited_ms, is_running=True)
        phrases.append(
            format_html('<span class="figure waited">{} {}</span>', _("waiting"), waited)
        )
    return RUN_HEAD(pk=view.pk, phrases=join(phrases, SEPARATOR))


RUN_FACTS = Element(
    """\
<p id="run-{pk}-facts" class="run-facts">
  <span class="agent">{agent}</span>
  <span class="model">{model}{tags}</span>
  {turns}
  {waited}
  {tokens}
  {cost}
  {resumed}
  <a class="to-trace" href="{href}">{icon}{trace}</a>
</p>
""",
    icon=icon("trace"),
    trace=gettext_lazy("Trace"),
)
FIGURE = Element('<span class="figure">{text}</span>')
TOKENS = Element('<span class="figure" title="{title}">{text}</span>')


def run_facts(view: RunView) -> SafeString:
    """Render who answered with what, and what it took."""
    run = view.run
    tags = (_("rule-based") if view.is_demo else "", view.tuning_label, view.route_label)
    turns = ""
    if run.max_steps:
        turns = _("turn %(turns)s/%(most)s") % {"turns": run.step_count, "most": run.max_steps}
    elif run.step_count:
        turns = ngettext("%(n)s step", "%(n)s steps", run.step_count) % {"n": run.step_count}
    waited = ""
    if view.has_waited and not view.is_waiting_now:
        waited = format_html(
            '<span class="figure waited" title="{}">{} {}</span>',
            _(
                "Time spent waiting for a user or for the model’s queue. Not included in "
                "the active time."
            ),
            _("waited"),
            _duration("duration", view.waited_ms, is_running=False),
        )
    tokens = ""
    if view.tokens:
        tokens = TOKENS(
            title=_("%(read)s input, %(written)s output tokens")
            % {"read": count(run.prompt_tokens), "written": count(run.completion_tokens)},
            text=_("%(tokens)s tokens") % {"tokens": count(view.tokens)},
        )
    resumed = ""
    if run.takeovers:
        resumed = format_html(
            '<span class="tag" title="{}">{}</span>',
            _("The server restarted during this run. The run resumed where it left off."),
            _("resumed after restart"),
        )
    return RUN_FACTS(
        pk=view.pk,
        agent=run.agent_name,
        model=view.model_label,
        tags=join(format_html(' <span class="tag">{}</span>', tag) for tag in tags if tag),
        turns=FIGURE(text=turns) if turns else "",
        waited=waited,
        tokens=tokens,
        cost="" if run.cost is None else FIGURE(text=cost(run.cost)),
        resumed=resumed,
        href=view.href,
    )


def run_header(view: RunView) -> SafeString:
    """Render what changes while a run works: its line and its facts, or the trace's."""
    if view.place == "trace":
        templates = ("trace/_status.html", "trace/_figures.html")
        return join(render_to_string(template, {"view": view}) for template in templates)
    return join((run_head(view), run_facts(view)))


RUN_FILES = Element(
    '<div class="run-files" role="group" aria-label="{label}">{files}</div>',
    label=gettext_lazy("Files"),
)


def _run_files(view: RunView) -> SafeString:
    """Render the files of folded steps, so that they stay next to the answer."""
    if view.run.is_live:
        return SafeString()
    files = [
        render_to_string("run/_attachments.html", {"step": step, "root": step.run_href})
        for step in view.first_steps
        if step.step.attachments
    ]
    return RUN_FILES(files=join(files)) if files else SafeString()


DURATION = Element('<span class="{name}">{text}</span>')
RUNNING_DURATION = Element('<span class="{name}" data-elapsed-ms="{elapsed}">{text}</span>')


def _duration(name: str, milliseconds: float | None, *, is_running: bool) -> SafeString:
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
        duration=_duration(
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


PLAN = Element(
    '<section id="plan-{pk}" class="plan" aria-label="{label}">{content}</section>',
    label=gettext_lazy("Plan"),
)


def plan_section(view: RunView, plan: PlanView | None) -> SafeString:
    """Render a plan; empty if there is none yet."""
    content = ""
    if plan:
        content = render_to_string("run/_plan.html", {"plan": plan, "now": plan.current})
    return PLAN(pk=view.pk, content=content)


FOLDED = Element('<p id="run-{pk}-folded" class="folded">{link}</p>')


def folded_note(run: int, rows: int) -> SafeString:
    """Render how many rows are only in the trace."""
    link = ""
    if rows:
        text = ngettext(
            "%(folded)s more row in the trace", "%(folded)s more rows in the trace", rows
        )
        link = format_html('<a href="{}">{}</a>', trace_url(run), text % {"folded": rows})
    return FOLDED(pk=run, link=link)


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
        if settings.ENVIRONMENT.speech_model:
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
