"""A run for display: everything the templates read."""

from datetime import datetime

from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.access.names import display_name
from agents.db.installation.contact import ContactLink
from agents.db.sentences import translate
from agents.engine.loop import StopReason
from agents.llm.demo.results import offered_examples
from agents.models import Run
from agents.runs import clocks, projection

from ..attachments import QuestionFileView, question_files
from ..formats import status_text
from ..formats.links import chat_url, milliseconds, trace_url
from ..steps.activity import (
    THINKING,
    WRITING,
    activity,
    current_activity,
    doing,
    public_activity,
    public_doing,
)
from .feedback import RunFeedback
from .next_steps import (
    ConsolePage,
    NextStep,
    administrator_advice,
    find_console_page,
    find_steps,
    lacks_administrator,
    write_to_administrator,
)

DEMO_MODEL = "demo"
EFFORT_LABELS = {
    "low": gettext_lazy("low effort"),
    "medium": gettext_lazy("medium effort"),
    "high": gettext_lazy("high effort"),
}


class RunView(RunFeedback):
    """A run with its rows, answer, feedback, times and what its user can do next."""

    @property
    def asked_with(self) -> dict[str, list[QuestionFileView]]:
        """The files of the question, in the form of a step's."""
        return {"files": question_files(self.run.files)}

    @property
    def pk(self) -> str:
        """The id for elements, not localized like a number."""
        return str(self.run.pk)

    @property
    def href(self) -> str:
        return trace_url(self.run.pk)

    @property
    def status_label(self) -> str:
        return str(Run.Status(self.run.status).label)

    @property
    def is_demo(self) -> bool:
        return self.run.model == DEMO_MODEL

    @property
    def model_label(self) -> str:
        return model_label(self.run.model)

    @property
    def tuning_label(self) -> str:
        """The effort or temperature that the user chose, if any."""
        effort, temperature = self.run.tuning
        if effort:
            return str(EFFORT_LABELS.get(effort, effort))
        if temperature is None:
            return ""
        return _("temperature %(value)g") % {"value": temperature}

    @property
    def route_label(self) -> str:
        """How the model was called, for the trace; imported answers say so everywhere."""
        if self.run.is_imported:
            return _("imported")
        if self.place != "trace":
            return ""
        routes = {"direct": _("direct"), "litellm": _("via LiteLLM")}
        return routes.get(self.run.route, "")

    @property
    def api_key_name(self) -> str:
        """The key of the program that started the run, if one did."""
        return self.run.api_key.name if self.run.api_key else ""

    @property
    def duration_ms(self) -> float | None:
        """How long the run worked, without waiting for people."""
        return None if self.run.active is None else self.run.active * 1000

    @property
    def elapsed_ms(self) -> float:
        """How long the run has worked so far."""
        since = milliseconds(self.run.started_at, self._now) or 0
        # In whole microseconds, so that float noise doesn't change it while nothing happens.
        return max(0.0, round(since - self.waited_ms, 3))

    @cached_property
    def waited_ms(self) -> float:
        """How long the run waited for people and for models, or has so far."""
        if not self.run.is_live:
            return self.run.waited * 1000
        intervals = [(row.asked_at, row.decided_at) for row in self._waited_for]
        intervals += self._queue_waits
        return projection.waited_seconds(intervals, self._now) * 1000

    @cached_property
    def _queue_waits(self) -> list[tuple[datetime, datetime | None]]:
        """When a live run waited for a model's turn."""
        return projection.queue_waits_of(self.run.steps.all()) if self.run.waited else []

    @property
    def has_waited(self) -> bool:
        """Whether anyone was waited for, known as soon as there is a request."""
        return bool(self._waited_for and self.run.is_live) or self.run.waited > 0

    @property
    def is_waiting_now(self) -> bool:
        """Whether a person or a model is being waited for; only that time is running."""
        if not self.run.is_live:
            return False
        in_line = any(end is None for _, end in self._queue_waits)
        return in_line or any(row.is_waiting for row in self.questions)

    @cached_property
    def _now(self) -> datetime:
        # Read once, or the time of a run that waits would grow by what lies between.
        return self.now or clocks.now(self.run.pk)

    @property
    def tokens(self) -> int:
        return self.run.total_tokens

    @property
    def cached_tokens(self) -> int:
        """The input tokens that providers read from their caches."""
        return sum(step.step.cache_read_tokens for step in self.steps)

    @property
    def cache_savings(self) -> float | None:
        """What providers' caches have saved in dollars; None if that is unknown."""
        savings = [
            step.step.cache_savings
            for step in self.steps
            if step.step.cache_savings is not None
        ]
        return sum(savings) if savings else None

    @property
    def user_name(self) -> str:
        return display_name(self.run.user)

    @property
    def chat_url(self) -> str:
        return chat_url(self.run)

    @cached_property
    def is_plain(self) -> bool:
        """Whether it did nothing but answer, so that there are no steps to look at."""
        return not self.run.is_live and all(step.is_plain for step in self.steps)

    @property
    def current_activity(self) -> str:
        """What a live run does at the moment."""
        say = public_doing if self.is_embedded else doing
        open_steps = {step.number: say(step) for step in self.steps if step.is_open}
        if not self.says_activity:
            return str(WRITING if open_steps and self.answer_shown else THINKING)
        if open_steps and self.answer_shown:
            return str(WRITING)
        return current_activity(open_steps)

    @property
    def activity(self) -> list[str]:
        """What the steps of a finished run did."""
        return public_activity(self.steps) if self.is_embedded else activity(self.steps)

    @property
    def sentence(self) -> str:
        return status_text.ending_sentence(self.run, is_shared=self.is_discussed)

    @property
    def can_continue(self) -> bool:
        """Whether another run can continue: this one ran out of steps or was cut off."""
        is_cut = self.run.stopped_reason == StopReason.COMPLETED and bool(self.run.detail)
        is_out = self.run.stopped_reason in {StopReason.MAX_STEPS, StopReason.BUDGET}
        is_unfinished = is_cut or is_out or self.run.can_continue or self.is_half_answered
        return self.place == "chat" and self.may_decide and is_unfinished

    @property
    def is_half_answered(self) -> bool:
        """Whether the user stopped the run in the middle of its answer."""
        return self.run.stopped_reason == StopReason.CANCELLED and bool(self.run.answer)

    @property
    def can_ask_again(self) -> bool:
        """Whether the same question can be sent again, if continuing isn't better."""
        ended_early = {Run.Status.STOPPED, Run.Status.FAILED, Run.Status.INTERRUPTED}
        is_here = self.place == "chat" and self.may_decide
        is_offered = not self.can_continue or self.is_half_answered
        return is_here and self.run.status in ended_early and is_offered

    @property
    def examples(self) -> list[str]:
        """What the demo model offers instead of an answer, as questions that it can answer."""
        is_here = self.place == "chat" and self.may_decide and not self.run.is_live
        return offered_examples(self.run.answer) if is_here and self.is_demo else []

    @cached_property
    def next_steps(self) -> list[NextStep]:
        """What helps after a run that ended without a normal answer."""
        return find_steps(self)

    @cached_property
    def console_page(self) -> ConsolePage | None:
        """Where the viewer changes what ended the run, if they are an administrator."""
        return find_console_page(self)

    @cached_property
    def contact(self) -> ContactLink | None:
        """The link with which the viewer asks an administrator."""
        return write_to_administrator(self)

    @cached_property
    def lacks_administrator(self) -> bool:
        """Whether an administrator would help, but no link leads to one."""
        return lacks_administrator(self)

    @property
    def administrator_advice(self) -> str:
        """The sentence instead of such a link."""
        return administrator_advice(self)

    @property
    def advice(self) -> str:
        return translate(self.run.advice)


def model_label(name: str) -> str:
    return _("Demo model") if name == DEMO_MODEL else name
