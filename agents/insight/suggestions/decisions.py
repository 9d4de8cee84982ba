"""What administrators do with a suggestion: measure, apply, take back, dismiss."""

from dataclasses import replace

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.access import audit
from agents.catalog import agent_spec, agent_versions
from agents.catalog.agent_spec import AgentSpec
from agents.catalog.language_models import model_setups
from agents.console.tool_admin import tool_tester
from agents.insight.problems.status import ChangeRejected, save_status
from agents.memory import texts
from agents.models import Agent
from agents.review.experiments import service
from agents.review.experiments.errors import ExperimentRejected
from agents.review.experiments.models import Experiment
from agents.review.experiments.sources.sources import ChosenRuns

from . import changes, evidence
from .models import MAX_TEXT_CHARS, Suggestion

Kind = Suggestion.Kind
Status = Suggestion.Status
Target = Experiment.Target
# Runs that the suggestion is about, and others that it must not make worse.
MAX_OWN_RUNS = 15
MAX_OTHER_RUNS = 15
RUBRIC = (
    "The answer answers the question, and follows this instruction as far as it applies: {text}"
)


def set_text(suggestion: Suggestion, text: str) -> None:
    """Change the instruction before it is measured or applied; raise ChangeRejected."""
    if suggestion.kind == Kind.TOOL_UNUSED:
        return
    line = texts.clean(text, MAX_TEXT_CHARS + 1)
    if not any(sign.isalnum() for sign in line):
        raise ChangeRejected(_("Enter the instruction."))
    if len(line) > MAX_TEXT_CHARS:
        sentence = _("The instruction can have up to %(most)d characters.")
        raise ChangeRejected(sentence % {"most": MAX_TEXT_CHARS})
    if line == suggestion.text:
        return
    _check_idle(suggestion)
    suggestion.text = line
    suggestion.before = None
    suggestion.after = None
    suggestion.save(update_fields=["text", "before", "after"])


def measure(suggestion: Suggestion, user: User) -> None:
    """Start two backtests on the same runs, without and with the suggestion."""
    agent = suggestion.agent
    spec = agent_spec.describe(agent)
    _check_possible(suggestion, spec)
    own = list(suggestion.runs.order_by("-pk").values_list("pk", flat=True)[:MAX_OWN_RUNS])
    completed = evidence.asked_runs().filter(agent=agent, status="completed", origin_step=None)
    newest = completed.exclude(pk__in=own).order_by("-pk").values_list("pk", flat=True)
    chosen_runs = ChosenRuns(runs=(*own, *newest[:MAX_OTHER_RUNS]))
    try:
        with transaction.atomic():
            _check_idle(Suggestion.objects.select_for_update().get(pk=suggestion.pk))
            changed_options = service.Options(is_live=_is_live(suggestion, spec, user))
            model = model_setups.model_name(agent)
            # The agent's model judges whether answers follow an instruction from feedback. The
            # demo model can't; then only answers with a correction are compared.
            if suggestion.kind == Kind.INSTRUCTION and model != model_setups.DEMO:
                rubric = RUBRIC.format(text=suggestion.text)
                changed_options = replace(changed_options, judge_model=model, rubric=rubric)
            published_options = replace(
                changed_options, target=Target.PUBLISHED, version=agent.version or None
            )
            suggestion.before = service.start_backtest(
                agent, spec, chosen_runs, user, published_options
            )
            new_spec = changes.changed_spec(spec, suggestion, suggestion.text)
            suggestion.after = service.start_backtest(
                agent, new_spec, chosen_runs, user, changed_options
            )
            suggestion.save(update_fields=["before", "after"])
    except ExperimentRejected as error:
        raise ChangeRejected(str(error)) from error


def _is_live(suggestion: Suggestion, spec: AgentSpec, user: User) -> bool:
    """Whether tools are called: a changed call of the failing tool isn't recorded.

    Only if the tool changes nothing and the user may run all tools of the agent.
    """
    if suggestion.kind != Kind.TOOL_FAILS:
        return False
    if suggestion.subject in service.writing_tools(spec):
        return False
    links = agent_spec.resolve(spec).links
    return not tool_tester.denial(user, [link.tool for link in links])


def _check_idle(suggestion: Suggestion) -> None:
    """Reject another measurement while one runs: each of them costs calls of models."""
    backtests = (suggestion.before, suggestion.after)
    if any(backtest is not None and backtest.is_running for backtest in backtests):
        raise ChangeRejected(_("The backtests are still running. Wait for their results."))


def apply(suggestion: Suggestion, user: User) -> int:
    """Publish the suggestion as a new version of the agent; return its number."""
    with transaction.atomic():
        agent = Agent.objects.select_for_update().get(pk=suggestion.agent_id)
        spec = agent_spec.describe(agent)
        _check_possible(suggestion, spec)
        # Without a version of what was there before, there would be no way back.
        agent_versions.save(agent, None)
        suggestion.base_version = agent.version
        agent_spec.restore(agent, changes.changed_spec(spec, suggestion, suggestion.text))
        note = _("Applied the suggestion “%(name)s”.") % {"name": suggestion}
        agent_versions.save(agent, user, note)
        suggestion.applied_version = agent.version
        _decide(suggestion, user, Status.APPLIED)
        audit.record(user, "suggestion.applied", agent, version=agent.version)
    suggestion.agent = agent
    return agent.version


def take_back(suggestion: Suggestion, user: User) -> int:
    """Publish the version before the suggestion again; raise ChangeRejected."""
    with transaction.atomic():
        agent = Agent.objects.select_for_update().get(pk=suggestion.agent_id)
        if suggestion.base_version is None or agent.version != suggestion.applied_version:
            raise ChangeRejected(
                _(
                    "The agent has changed since then. Restore a version from its history "
                    "instead."
                )
            )
        agent_versions.restore(agent, suggestion.base_version, user)
        suggestion.base_version = suggestion.applied_version = None
        _decide(suggestion, user, Status.OPEN)
        audit.record(user, "suggestion.undone", agent, version=agent.version)
    suggestion.agent = agent
    return agent.version


def dismiss(suggestion: Suggestion, user: User) -> None:
    """Keep it from being suggested again."""
    _change(suggestion, user, Status.DISMISSED)


def reopen(suggestion: Suggestion, user: User) -> None:
    _change(suggestion, user, Status.OPEN)


@transaction.atomic
def _change(suggestion: Suggestion, user: User, status: Suggestion.Status) -> None:
    if suggestion.is_applied:
        raise ChangeRejected(_("This suggestion has been applied. Undo it first."))
    _decide(suggestion, user, status)
    action = "suggestion.dismissed" if status == Status.DISMISSED else "suggestion.reopened"
    audit.record(user, action, suggestion.agent, reason=str(suggestion))


def _decide(suggestion: Suggestion, user: User, status: Suggestion.Status) -> None:
    versions = {name: getattr(suggestion, name) for name in ("base_version", "applied_version")}
    save_status(suggestion, status, decided_by=user, decided_at=timezone.now(), **versions)


def _check_possible(suggestion: Suggestion, spec: AgentSpec) -> None:
    if not suggestion.is_open:
        raise ChangeRejected(_("This suggestion is no longer open."))
    if not changes.is_possible(spec, suggestion) or changes.is_contained(spec, suggestion):
        raise ChangeRejected(
            _("The agent has changed since then, and there is nothing left to apply.")
        )
