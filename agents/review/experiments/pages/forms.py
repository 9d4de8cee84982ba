"""Forms that start an experiment."""

from typing import Any, cast

from django import forms
from django.contrib.auth.models import User
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from agents.catalog.agent_spec import AgentSpec
from agents.catalog.language_models import model_setups
from agents.models import Agent
from agents.review.experiments import service
from agents.review.experiments.errors import ExperimentRejected
from agents.review.experiments.models import Experiment
from agents.review.experiments.scoring import targets
from agents.review.experiments.sources.sources import RUN_COUNTS, PastRuns, Source
from agents.review.models import ExampleSet

MAX_VERSIONS = 20
DEFAULT_SOURCE = "runs-20"
Target = Experiment.Target


class TargetForm(forms.Form):
    """Which version of an agent to test."""

    target = forms.ChoiceField(label=_("Version"), required=False)

    agent: Agent | None = None

    def _offer_targets(self, agent: Agent | None) -> None:
        self.agent = agent
        choices: list[tuple[str, str]] = []
        if agent is not None:
            if targets.has_draft(agent):
                choices.append((Target.DRAFT, gettext("Draft (unpublished changes)")))
            current = gettext("Published (version %(number)s)") % {
                "number": agent.version or "–"
            }
            choices.append((Target.PUBLISHED, current))
            older = agent.versions.exclude(number=agent.version)
            for number in older.values_list("number", flat=True)[:MAX_VERSIONS]:
                choices.append(
                    (str(number), gettext("Version %(number)s") % {"number": number})
                )
        cast(forms.ChoiceField, self.fields["target"]).choices = choices

    def tested(self) -> tuple[AgentSpec, str, int | None]:
        """Return the settings to test; raise ExperimentRejected."""
        if self.agent is None:
            raise ExperimentRejected(gettext("Choose an agent."))
        offered = cast(forms.ChoiceField, self.fields["target"]).choices
        # The draft, if there is one.
        first, _label = next(iter(cast(list[tuple[str, str]], offered)))
        chosen = self.cleaned_data.get("target") or first
        if chosen == Target.DRAFT:
            return targets.draft(self.agent), Target.DRAFT, None
        if chosen != Target.PUBLISHED:
            spec, number = targets.version(self.agent, int(chosen))
            return spec, Target.VERSION, number
        spec, current = targets.published(self.agent)
        return spec, Target.PUBLISHED, current


class RunSetForm(TargetForm):
    """How to run an example set."""

    agent_name = forms.ModelChoiceField(Agent.objects.none(), label=_("Agent"))
    mode = forms.ChoiceField(
        label=_("Tools"),
        widget=forms.RadioSelect,
        choices=[
            ("recorded", _("Recorded results: no tools are called")),
            ("live", _("Live: read-only tools are called")),
        ],
    )
    judge_model = forms.ChoiceField(label=_("Judge model"), required=False)
    deadline = forms.IntegerField(
        label=_("Timeout per question (seconds)"),
        min_value=1,
        max_value=service.MAX_DEADLINE_SECONDS,
        initial=service.DEADLINE_SECONDS,
    )

    field_order = ["agent_name", "target", "mode", "judge_model", "deadline"]

    def __init__(
        self, data: Any, *, agent: Agent | None, has_judge: bool, unrecorded: int, count: int
    ) -> None:
        mode = "live" if unrecorded == count else "recorded"
        initial = {"agent_name": agent, "mode": mode}
        super().__init__(data, initial=initial, label_suffix="")
        if unrecorded:
            sentence = ngettext(
                "%(count)d example has no recorded results. With recorded results, it "
                "stops at its first tool call.",
                "%(count)d examples have no recorded results. With recorded results, they "
                "stop at their first tool call.",
                unrecorded,
            )
            self.fields["mode"].help_text = sentence % {"count": unrecorded}
        agents = Agent.objects.filter(enabled=True).order_by("name")
        cast(forms.ModelChoiceField, self.fields["agent_name"]).queryset = agents
        self._offer_targets(agent)
        if has_judge:
            names = model_setups.model_labels()
            default = model_setups.model_name(agent) if agent else ""
            choices = [(name, name) for name in dict.fromkeys([default, *names]) if name]
            field = cast(forms.ChoiceField, self.fields["judge_model"])
            field.choices = choices
            field.initial = default
        else:
            del self.fields["judge_model"]

    @property
    def options(self) -> dict[str, Any]:
        values = self.cleaned_data
        return {
            "is_live": values["mode"] == "live",
            "judge_model": values.get("judge_model", ""),
            "deadline": values["deadline"],
        }


class BacktestForm(TargetForm):
    """Which runs a version repeats."""

    source = forms.ChoiceField(label=_("Questions"), required=False)
    status = forms.ChoiceField(
        label=_("Status"),
        required=False,
        choices=[
            ("", _("Any status")),
            ("completed", _("Completed")),
            ("problem", _("Failed, stopped or blocked")),
        ],
    )
    rating = forms.ChoiceField(
        label=_("Rating"),
        required=False,
        choices=[("", _("Any rating")), ("up", _("Thumbs up")), ("down", _("Thumbs down"))],
    )

    field_order = ["target", "source", "status", "rating"]

    def __init__(self, data: Any, *, agent: Agent, user: User) -> None:
        # Bound from the start, because the page says what it would cost.
        super().__init__(data or {"source": DEFAULT_SOURCE}, label_suffix="")
        self._offer_targets(agent)
        counts = [
            (f"runs-{count}", gettext("Last %(count)d runs") % {"count": count})
            for count in RUN_COUNTS
        ]
        may_see = user.has_perm("review.view_exampleset")
        self.sets = {f"set-{row.pk}": row for row in ExampleSet.objects.all() if may_see}
        sets = [
            (key, gettext("Set: %(name)s") % {"name": example_set})
            for key, example_set in self.sets.items()
        ]
        cast(forms.ChoiceField, self.fields["source"]).choices = [*counts, *sets]

    def chosen_source(self) -> Source:
        values = self.cleaned_data
        chosen = values.get("source") or DEFAULT_SOURCE
        if chosen in self.sets:
            return self.sets[chosen]
        count = int(chosen.partition("-")[2])
        return PastRuns(count=count, status=values["status"], rating=values["rating"])
