"""HTML of a run, one element at a time, for its page and its live frames alike.

A header or a step's row is rendered with every change of a run, and a template takes many times
as long as an `Element`. What only some runs have is a template.
"""

from django.template.loader import render_to_string
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agents.models import Run

from . import BARE, BRIEF, FULL, PlanView, RunView, embedded_run
from .answer_fragments import answer_actions, answer_more, corrected_note, correction_section
from .element import Element, join
from .evidence_fragments import evidence_bar, evidence_sources
from .formats.formatting import cost, count
from .formats.icons import icon, status_mark
from .formats.links import trace_url
from .step_fragments import IS_LIVE, fits, step_row, timed


def run_section(view: RunView) -> SafeString:
    """Render the whole run as far as it fits: pages and frames have limits."""
    for size in (FULL, BRIEF, BARE):
        sized_view = view if size == FULL else view.of(size)
        if view.place == "trace":
            html = render_to_string("trace/_run.html", {"view": sized_view})
        elif view.is_embedded:
            html = embedded_run.run_section(sized_view)
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
        elements.append(answer_actions(view))
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
RUN_ACTIVITY = Element('<span id="run-{pk}-activity">{text}</span>')
WORKING = Element(
    '<span class="status" data-status="{status}">{icon}{activity}</span>',
    icon=icon("running"),
)
SEPARATOR = mark_safe('<span class="between" aria-hidden="true"> · </span>')


def run_activity(run: int, text: str) -> SafeString:
    """Render what a live run does at the moment, which the page also announces."""
    return RUN_ACTIVITY(pk=run, text=text)


def run_head(view: RunView, activity: str = "") -> SafeString:
    """Render what a run is doing or did, and for how long.

    `activity` is what it does at the moment, if that is known without its steps.
    """
    run = view.run
    is_waiting = view.is_waiting_now
    phrases = []
    if run.status == Run.Status.RUNNING:
        text = run_activity(run.pk, activity or view.current_activity)
        phrases.append(WORKING(status=run.status, activity=text))
    elif run.is_live or run.status != Run.Status.COMPLETED:
        phrases.append(status_mark(run.status, view.status_label))
    if run.is_live and view.active_agent:
        phrases.append(format_html('<span class="agent">{}</span>', view.active_agent))
    elif view.is_plain:
        phrases.append(format_html('<span class="agent">{}</span>', run.agent_name))
    elif not run.is_live:
        phrases += [format_html("<span>{}</span>", phrase) for phrase in view.activity]
    elapsed = timed(
        "figure duration",
        view.elapsed_ms if run.is_live else view.duration_ms,
        is_running=run.is_live and not is_waiting,
    )
    phrases.append(elapsed)
    if is_waiting:
        waited = timed("duration", view.waited_ms, is_running=True)
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
            timed("duration", view.waited_ms, is_running=False),
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


def run_header(view: RunView, activity: str = "") -> SafeString:
    """Render what changes while a run works: its line and its facts, or the trace's."""
    if view.place == "trace":
        templates = ("trace/_status.html", "trace/_figures.html")
        return join(render_to_string(template, {"view": view}) for template in templates)
    if view.is_embedded:
        return embedded_run.run_head(view, activity)
    return join((run_head(view, activity), run_facts(view)))


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
