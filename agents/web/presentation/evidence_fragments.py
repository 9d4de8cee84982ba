"""HTML of an answer's evidence: its sources, and what its citations display on hover."""

from collections.abc import Callable, Sequence
from functools import cache

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from . import RunView
from .element import Element, join
from .evidence import Evidence, Link, NumberedSource, Observation, shared_by
from .formats.icons import icon
from .recordings import play_passage

MAX_OPEN = 6  # sources; the others are folded
EVIDENCE = Element("""\
{sources}
  <div class="evidence-bar"{has_sources}>
    <p class="evidence-note">{note}</p>
    {tips}
  </div>
""")
HAS_SOURCES = mark_safe(" data-sources")
UNSUPPORTED_BUTTON = Element(
    '<button type="button" class="{kind}" aria-pressed="false" data-unsupported>\
{icon}<span>{label}</span></button>',
    icon=icon("unknown"),
    label=gettext_lazy("Unsourced statements"),
)
SOURCES = Element(
    '<section class="evidence-sources" aria-label="{label}">{content}</section>',
    label=gettext_lazy("Sources"),
)
LIST = Element("<ol>{items}</ol>")
FOLDED = Element(
    "<details><summary>{label}{icon}</summary>{content}</details>", icon=icon("forward")
)
SOURCE = Element("""\
<li><a href="{href}"{kind}>{number}{icon}<b>{title}</b> <span>{detail}</span></a>{play}</li>""")
NUMBER = Element('<span class="evidence-number">{number}</span>')
OPENS_DOCUMENT = mark_safe(" data-document")
OPENS_STEP = mark_safe(' class="evidence-step"')
OPENS_PAGE = mark_safe(' target="_blank" rel="noopener noreferrer nofollow"')
TIP = Element("""\
<div><p class="evidence-source"><b>{title}</b> <span>{place}</span></p>{asked}\
{computed}<p class="evidence-text">{text}</p>{rounded}</div>""")
COMPUTED = Element('<p class="evidence-computed">{computed}</p>')
ASKED = Element('<p class="evidence-source"><code>{asked}</code></p>')


def evidence_bar(evidence: Evidence, view: RunView | None = None) -> SafeString:
    """Render what an answer is based on; a public copy has no view of its run."""
    if not evidence.is_complete:
        note = _("The results are too long to compare with every statement.")
    elif not evidence.sources:
        note = _("This answer is based on no results, so none of its statements has a source.")
    elif evidence.has_unsupported:
        note = _("Marked statements and figures aren’t in any result. They may still be right.")
    else:
        note = _("Every statement matches a result.")
    return EVIDENCE(
        sources=evidence_sources(evidence, view),
        has_sources=HAS_SOURCES if evidence.sources else "",
        note=note,
        tips=evidence_tips(evidence, view),
    )


def evidence_tips(evidence: Evidence, view: RunView | None = None) -> SafeString:
    """Render what the citations display on hover."""
    if not evidence.links:
        return SafeString()
    owner = _owner_names(view)
    content = join(_tip(link, owner(link.source)) for link in evidence.links)
    return format_html("<template>{}</template>", content)


def unsupported_button(evidence: Evidence, kind: str = "") -> SafeString:
    """Render the switch that marks what has no source; `kind` is the class of the button."""
    return UNSUPPORTED_BUTTON(kind=kind) if evidence.html else SafeString()


def evidence_sources(evidence: Evidence, view: RunView | None = None) -> SafeString:
    """Render the sources that an answer cites; folded, the passages that were only read."""
    cited = evidence.listed
    read = [NumberedSource(0, source) for source in evidence.also_read]
    if not cited and not read:
        return SafeString()
    owner = _owner_names(view)

    def render_list(sources: Sequence[NumberedSource]) -> SafeString:
        items = [_source(item, owner(item.source), evidence, view) for item in sources]
        return LIST(items=join(items)) if items else SafeString()

    elements = []
    if cited:
        elements += [format_html("<h3>{}</h3>", _("Sources")), render_list(cited[:MAX_OPEN])]
    more = cited[MAX_OPEN:]
    read_label = _read_label(len(read))
    if more:
        heading = format_html("<h3>{}</h3>", read_label) if read else ""
        label = _("Show all %(count)d") % {"count": len(cited)}
        content = join((render_list(more), heading, render_list(read)))
        elements.append(FOLDED(label=label, content=content))
    elif read:
        elements.append(FOLDED(label=read_label, content=render_list(read)))
    return SOURCES(content=join(elements))


def source_names(view: RunView) -> dict[str, list[str]]:
    """Return the same sources by their names, below their headings, for documents."""
    if not view.sources:  # most answers have none, and needn't be rendered
        return {}
    evidence = view.evidence if view.has_evidence else view.output_evidence
    if evidence is None:
        return {}
    cited = [f"[{number}] {_name(source)}" for number, source in evidence.listed]
    read = [_name(source) for source in evidence.also_read]
    names = {_("Sources"): cited, _read_label(len(read)): read}
    return {heading: sources for heading, sources in names.items() if sources}


def _read_label(passages: int) -> str:
    label = ngettext("Also read: %(count)s passage", "Also read: %(count)s passages", passages)
    return label % {"count": passages}


def _name(source: Observation) -> str:
    return " · ".join(filter(None, (source.title, source.detail)))


def _source(
    item: NumberedSource, owner: str, evidence: Evidence, view: RunView | None
) -> SafeString:
    source = item.source
    is_opened = bool(evidence.documents) and source.passage is not None
    href = f"{evidence.base}{source.step}"
    kind = OPENS_STEP
    if source.page:
        href = source.page
        kind = OPENS_PAGE
    elif is_opened:
        href = f"{evidence.documents}{source.number}/"
        kind = OPENS_DOCUMENT
    play = ""
    if view is not None and view.recordings and source.passage is not None:
        play = play_passage(view.recordings, source)
    return SOURCE(
        href=href,
        kind=kind,
        number=NUMBER(number=item.number) if item.number else "",
        icon=icon(source.icon),
        title=source.title,
        detail=" · ".join(filter(None, (source.detail, owner))),
        play=play,
    )


def _tip(link: Link, owner: str) -> SafeString:
    source = link.source
    if source.passage is not None:
        place = " · ".join(filter(None, (source.place, owner)))
    else:
        place = _("step %(number)s") % {"number": source.step}
    text = source.excerpt
    if link.match:
        text = format_html("{}<mark>{}</mark>{}", link.before, link.match, link.after)
    rounded = ""
    if link.is_rounded:
        rounded = format_html('<p class="evidence-source">{}</p>', _("Rounded in the answer."))
    return TIP(
        title=source.title,
        place=place,
        asked=ASKED(asked=source.asked) if source.asked and source.passage is None else "",
        computed=COMPUTED(computed=_computed(link)) if link.computation else "",
        text=text,
        rounded=rounded,
    )


def _computed(link: Link) -> str:
    """Return how a figure follows from the results: 1,240 + 860 = 2,100."""
    computation = link.computation
    if computation is None:
        return ""
    if computation.formula:
        return f"{computation.formula} = {link.result}"
    params = {"result": link.result, "count": computation.size}
    match computation.kind:
        case "sum":
            return _("Sum of %(count)s values: %(result)s") % params
        case "average":
            return _("Average of %(count)s values: %(result)s") % params
        case "median":
            return _("Median of %(count)s values: %(result)s") % params
    return _("Counted in the result: %(count)s") % params


def _owner_names(view: RunView | None) -> Callable[[Observation], str]:
    """Return a function for who shared the collection of a source."""
    asker = view.run.user_id if view else None
    return cache(lambda source: shared_by(source, asker))
