"""Experiments: cases that an agent or a guardrail is tested on, and how each was scored."""

from datetime import timedelta
from typing import Any, Self

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.models import Agent, ReviewScope, Run
from agents.models.knowledge.leases import Leased
from agents.models.sentence_fields import SentenceField
from agents.models.types import AnyUser
from agents.review.models import REVIEW_PERMISSION, Example, ExampleSet

VIEW_PERMISSION = "experiments.view_experiment"


class ExperimentQuerySet(models.QuerySet["Experiment"]):
    def for_user(self, user: AnyUser) -> Self:
        """Return what this user started or, with permission to see experiments, everyone's.

        Reviewers see those of the agents in their scope. Not others' backtests of guardrails:
        even a count can reveal text that is masked.
        """
        own = models.Q(started_by=user.pk) if user.is_authenticated else models.Q(pk__in=())
        of_agents = ~models.Q(kind=Experiment.Kind.GUARDRAIL)
        if user.has_perm(VIEW_PERMISSION):
            return self.filter(own | of_agents)
        if not user.has_perm(REVIEW_PERMISSION):
            return self.filter(own)
        agents = ReviewScope.objects.agents_of(user)
        if agents is not None:
            of_agents &= models.Q(agent__in=agents)
        return self.filter(own | of_agents)

    def open(self) -> Self:
        return self.filter(state=Experiment.State.RUNNING)


class Experiment(models.Model):
    """One pass of an agent's version or draft, or of a guardrail, over a set or past runs."""

    class Kind(models.TextChoices):
        EXAMPLES = "examples", _("Example set")
        BACKTEST = "backtest", _("Backtest")
        GUARDRAIL = "guardrail", _("Guardrail")

    class Target(models.TextChoices):
        PUBLISHED = "published", _("Published")
        VERSION = "version", _("Earlier version")
        DRAFT = "draft", _("Draft")

    class State(models.TextChoices):
        RUNNING = "running", _("running")
        DONE = "done", _("finished")
        CANCELLED = "cancelled", _("canceled")
        FAILED = "failed", _("failed")

    kind = models.CharField(_("kind"), max_length=10, choices=Kind)
    state = models.CharField(
        _("status"), max_length=10, choices=State, default=State.RUNNING, db_index=True
    )
    example_set = models.ForeignKey(
        ExampleSet,
        verbose_name=_("example set"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="experiments",
    )
    agent = models.ForeignKey(
        Agent,
        verbose_name=_("agent"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="experiments",
    )
    target = models.CharField(_("version tested"), max_length=10, choices=Target)
    version = models.PositiveIntegerField(_("agent version"), null=True, blank=True)
    spec = models.JSONField(_("settings tested"), default=dict)
    is_live = models.BooleanField(
        _("live tools"),
        default=False,
        help_text=_("When on, tools run. When off, they return the recorded results."),
    )
    judge_model = models.CharField(_("judge model"), max_length=200, blank=True)
    rubric = models.TextField(
        _("rubric"),
        blank=True,
        default="",
        help_text=_("The judge also uses this to grade answers to past messages."),
    )
    deadline = models.PositiveIntegerField(_("timeout per question (seconds)"), default=120)
    left_out = models.JSONField(_("left out"), default=list, blank=True)
    problem = SentenceField(_("problem"), blank=True)
    is_to_stop = models.BooleanField(_("cancel requested"), default=False)
    count = models.PositiveIntegerField(_("questions"), default=0)
    passed = models.PositiveIntegerField(_("passed"), default=0)
    score = models.FloatField(_("score"), null=True, blank=True)
    cost = models.FloatField(_("cost (USD)"), null=True, blank=True)
    started_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("started by"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    started_at = models.DateTimeField(_("started"), auto_now_add=True)
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True)

    objects = ExperimentQuerySet.as_manager()

    class Meta:
        verbose_name = _("experiment")
        verbose_name_plural = _("experiments")
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"#{self.pk}"

    @property
    def is_running(self) -> bool:
        return self.state == self.State.RUNNING

    @property
    def agent_name(self) -> str:
        return self.agent.name if self.agent else ""

    @property
    def target_label(self) -> str:
        """What was tested, such as "version 4" or "draft"."""
        if self.target == self.Target.DRAFT:
            return str(_("draft"))
        return str(_("version %(number)s") % {"number": self.version or "–"})


class ExperimentResult(Leased):
    """One case of an experiment: its run, if it needs one, and how it was scored.

    A case of a guardrail is a recorded run, or the text of it that `name` says.
    """

    # Longer than a judge takes.
    LEASE = timedelta(minutes=5)
    SCORED_FIELDS = (
        "state",
        "verdict",
        "score",
        "base_score",
        "checks",
        "divergence",
        "problem",
        "judge_cost",
    )

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting")
        RUNNING = "running", _("running")
        SCORING = "scoring", _("being scored")
        PASSED = "passed", _("passed")
        FAILED = "failed", _("failed")
        DIVERGED = "diverged", _("diverged")
        APPROVAL = "approval", _("needs approval")
        ERROR = "error", _("error")
        CANCELLED = "cancelled", _("canceled")

    class Verdict(models.TextChoices):
        BETTER = "better", _("better")
        SAME = "same", _("same")
        CHANGED = "changed", _("changed")
        WORSE = "worse", _("worse")
        STOPPED = "stopped", _("stopped")

    OPEN = (State.WAITING, State.RUNNING, State.SCORING)

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="results")
    number = models.PositiveIntegerField(_("number"))
    example = models.ForeignKey(
        Example,
        verbose_name=_("example"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="results",
    )
    origin = models.ForeignKey(
        Run,
        verbose_name=_("recorded run"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
    )
    run = models.ForeignKey(
        Run,
        verbose_name=_("run"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="experiment_results",
    )
    name = models.CharField(_("name"), max_length=120)
    state = models.CharField(_("result"), max_length=10, choices=State, default=State.WAITING)
    verdict = models.CharField(
        _("compared with the recording"), max_length=10, choices=Verdict, blank=True
    )
    score = models.FloatField(_("score"), null=True, blank=True)
    base_score = models.FloatField(_("score of the recording"), null=True, blank=True)
    checks = models.JSONField(_("checks"), default=list, blank=True)
    divergence = models.JSONField(_("first divergence"), null=True, blank=True)
    problem = SentenceField(_("problem"), blank=True)
    judge_cost = models.FloatField(_("cost of the judge (USD)"), null=True, blank=True)

    class Meta:
        verbose_name = _("experiment result")
        verbose_name_plural = _("experiment results")
        ordering = ["experiment_id", "number"]
        constraints = [
            models.UniqueConstraint(
                fields=["experiment", "number"], name="one_result_a_question"
            )
        ]

    def __str__(self) -> str:
        return self.name

    def scored_values(self) -> dict[str, Any]:
        """Return what scoring it changes."""
        return {name: getattr(self, name) for name in self.SCORED_FIELDS}

    @property
    def is_open(self) -> bool:
        return self.state in self.OPEN
