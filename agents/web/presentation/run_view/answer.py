"""A run's answer for display: its HTML, what it is based on, structured output."""

from django.utils.functional import cached_property
from django.utils.safestring import SafeString

from agents.access.masking import ANSWER_STEP
from agents.engine.material import output_numbers
from agents.models import AgentStep
from agents.runs import event_store

from ..evidence import (
    STEP_LINK,
    Evidence,
    Link,
    NumberedSource,
    Sources,
    find_evidence,
    observed,
    sources_of,
)
from ..formats.formatting import MAX_ROW_CHARS, MAX_SHOWN_CHARS, format_value
from ..formats.links import text_url, trace_url
from ..formats.structured_output import OutputView, build_output_view
from ..markdown import (
    MAX_ANSWER_CHARS,
    BoundedMarkdown,
    StreamingMarkdown,
    render_excerpt,
    render_markdown,
)
from ..recordings import Recording, find_recordings, has_times, link_times
from .rows import EMBED, EMBED_QUIET, RunRows

# Pages that display one answer in full.
FULL_ANSWER_PLACES = {"compare", "shared"}
# Pages whose answers have links to the steps.
EVIDENCE_PLACES = {"chat", "trace", "shared", EMBED, EMBED_QUIET}
# Pages whose readers can open the chat's files.
PLAYING_PLACES = {"chat", "trace"}


class RunAnswer(RunRows):
    """A run with its rows and its answer."""

    @cached_property
    def markdown(self) -> StreamingMarkdown:
        text = "" if self.is_unstarted else event_store.streamed_answer(self.run, self.until)
        visible = text if self.masker is None else self.masker.begin(ANSWER_STEP, text)
        markdown_class = (
            StreamingMarkdown if self.place in FULL_ANSWER_PLACES else BoundedMarkdown
        )
        return markdown_class(visible, f"answer-{self.run.pk}")

    @property
    def frozen_html(self) -> SafeString:
        return self.markdown.frozen_html if self.run.is_live else self.evidence.html

    @cached_property
    def evidence(self) -> Evidence:
        """The answer's HTML with links to what it is based on, once it is complete."""
        html = self._answer_excerpt[0]
        if not self.has_evidence:
            return Evidence(html)
        if self.is_embedded:  # passages only, which are below the answer
            passages = tuple(source for source in self.sources if source.passage is not None)
            own = f"#source-{self.run.pk}-"
            return find_evidence(html, passages, own, documents=own, question=self.run.query)
        if self.place == "shared":  # without links to documents
            return find_evidence(html, self.sources, STEP_LINK, question=self._known_text)
        if self.recordings:
            html = link_times(html, self.recordings)
        run_url = trace_url(self.run.pk)
        return find_evidence(
            html,
            self.sources,
            f"{run_url}{STEP_LINK}",
            documents=f"{run_url}sources/",
            question=self._known_text,
        )

    @property
    def _known_text(self) -> str:
        """The message, and the date, which its models are told."""
        started = self.run.started_at
        return f"{self.run.query}\n{started.date().isoformat()}" if started else self.run.query

    @cached_property
    def recordings(self) -> tuple[Recording, ...]:
        """The recordings that times in the answer are of; most answers have no times."""
        if self.place not in PLAYING_PLACES or self.masker is not None:
            return ()
        is_read = any(
            source.passage and source.passage.kind == "clip" for source in self.sources
        )
        if not is_read and not has_times(self.run.answer):
            return ()
        return find_recordings(self.run, self.sources)

    @property
    def has_evidence(self) -> bool:
        """Whether the page says what the answer is based on."""
        return self._is_sourced and bool(self.run.answer) and self.run.output is None

    @property
    def _is_sourced(self) -> bool:
        """Whether answers have their sources on this page."""
        return self.place in EVIDENCE_PLACES and self.shows_results and not self.run.is_live

    @cached_property
    def output_evidence(self) -> Evidence | None:
        """The passages that a structured answer cites, and those that were only read."""
        if self.run.output is None or not self._is_sourced:
            return None
        cited = set(output_numbers(self.run.output))
        passages = [source for source in self.sources if source.passage is not None]
        listed = {s.number: NumberedSource(s.number, s) for s in passages if s.number in cited}
        run_url = "" if self.place == "shared" else trace_url(self.run.pk)
        return Evidence(
            SafeString(),
            tuple(Link(source) for _number, source in listed.values()),
            self.sources,
            tuple(listed[number] for number in sorted(listed)),
            base=f"{run_url}{STEP_LINK}",
            documents=f"{run_url}sources/" if run_url else "",
        )

    @cached_property
    def sources(self) -> Sources:
        """The run's observations and passages."""
        if self.waterfall is not None:  # its rows have only the beginning of a result
            has_calls = any(s.kind == AgentStep.Kind.TOOL for s in self.waterfall.steps)
            return sources_of(self.run, self.visible_row) if has_calls else ()
        return observed(sorted((step.step for step in self.steps), key=lambda s: s.number))

    @cached_property
    def _answer_excerpt(self) -> tuple[SafeString, int]:
        """The answer's HTML and how many characters it has."""
        answer = self.run.answer
        if self.place in FULL_ANSWER_PLACES:
            return render_markdown(answer), len(answer)
        grown = None if self.is_brief else self.grown
        if grown is not None and grown.is_whole(answer) and grown.is_short:
            return grown.whole, len(answer)
        return render_excerpt(answer, MAX_ROW_CHARS if self.is_brief else MAX_ANSWER_CHARS)

    @property
    def answer_size(self) -> int:
        """The answer's full length; in lists, only the displayed part is loaded."""
        if self.run.is_live:
            return self.answer_shown + self.answer_left_out
        return vars(self.run).get("answer_size") or len(self.run.answer)

    @property
    def answer_shown(self) -> int:
        return self.markdown.shown_chars if self.run.is_live else self._answer_excerpt[1]

    @property
    def answer_left_out(self) -> int:
        """Number of characters that aren't displayed."""
        if self.run.is_live:
            return self.markdown.left_out
        return self.answer_size - self._answer_excerpt[1]

    @property
    def answer_href(self) -> str:
        return text_url(self.run.pk, "answer")

    @property
    def tail(self) -> SafeString:
        return self.markdown.tail_html if self.run.is_live else SafeString()

    @cached_property
    def output_view(self) -> OutputView | None:
        """The structured answer; a trace displays the JSON itself."""
        is_there = self.run.output is not None and self.place == "chat" and not self.is_brief
        return build_output_view(self.run.output) if is_there else None

    @property
    def output_text(self) -> str:
        if self.run.output is None:
            return ""
        return format_value(
            self.run.output, MAX_ROW_CHARS if self.is_brief else MAX_SHOWN_CHARS
        )
