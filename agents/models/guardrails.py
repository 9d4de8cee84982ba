"""Guardrails (patterns and model checks), their hits, and verdicts on them."""

from typing import Any, Self

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.signals import pre_delete
from django.dispatch import receiver
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.engine.errors import BadPattern
from agents.engine.guardrails import Pattern

from .catalog.agents import Agent
from .runs.runs import Run
from .types import AnyUser


class GuardrailPatternQuerySet(models.QuerySet["GuardrailPattern"]):
    def for_agent(self, agent: int | None) -> Self:
        """Return the patterns of an agent, by id: its own, and those for all."""
        chosen = models.Q(agents=None) | models.Q(agents=agent)
        return self.filter(chosen, enabled=True)


def stage_choices() -> list[tuple[str, Any]]:
    """A callable, so that a new stage needs no migration."""
    return GuardrailPattern.Stage.choices


class GuardrailPattern(models.Model):
    class Stage(models.TextChoices):
        INPUT = "input", _("User message")
        OUTPUT = "output", _("Agent answer")
        BOTH = "both", _("Message and answer")
        TOOL_INPUT = "tool_input", _("Tool arguments")
        TOOL_OUTPUT = "tool_output", _("Tool result")

    class Action(models.TextChoices):
        ALLOW = "allow", _("Allow")
        WARN = "warn", _("Warn")
        MASK = "mask", _("Mask")
        BLOCK = "block", _("Block")

    class Kind(models.TextChoices):
        WORDS = "words", _("Words or phrases")
        PATTERN = "pattern", _("Regular expression")
        MODEL = "model", _("Model check")

    class Failure(models.TextChoices):
        ALLOW = "allow", _("Allow the text, and note that it wasn't checked")
        BLOCK = "block", _("Block the text")

    name = models.CharField(_("name"), max_length=80, unique=True)
    kind = models.CharField(_("kind"), max_length=10, choices=Kind, default=Kind.PATTERN)
    position = models.PositiveIntegerField(
        _("position"),
        default=0,
        help_text=_("Rules are checked from the lowest to the highest."),
    )
    pattern = models.CharField(
        _("pattern"),
        max_length=8_000,  # of a list of words; an expression can have 1,000
        blank=True,
        help_text=_("RE2 regular expression. Start with (?i) to ignore case."),
    )
    stage = models.CharField(
        _("stage"), max_length=12, choices=stage_choices, default=Stage.BOTH
    )
    action = models.CharField(
        _("action"),
        max_length=10,
        choices=Action,
        default=Action.BLOCK,
        help_text=_(
            "Block: stops the text. Mask: replaces the matched text with ‹name›. Warn: "
            "only records the hit. Allow: exempts the matched text from all other rules."
        ),
    )
    message = models.CharField(
        _("message"),
        max_length=300,
        blank=True,
        help_text=_("What the user sees. Default: “This text isn't allowed here.”"),
    )
    agents = models.ManyToManyField(
        Agent,
        verbose_name=_("agents"),
        blank=True,
        related_name="patterns",
        help_text=_("Agents it applies to. If none is selected, it applies to all."),
    )
    is_observed = models.BooleanField(
        _("observe only"),
        default=False,
        help_text=_("Records what the pattern would have done, without changing anything."),
    )
    enabled = models.BooleanField(_("enabled"), default=True)

    # Of a model check
    model = models.CharField(
        _("model"),
        max_length=200,
        blank=True,
        help_text=_("Decides whether a text breaks the rule. A small, fast model is enough."),
    )
    rubric = models.TextField(
        _("rule for the model"),
        blank=True,
        max_length=8_000,
        help_text=_(
            "What counts as a violation, in plain words. Examples make it more reliable."
        ),
    )
    threshold = models.PositiveSmallIntegerField(
        _("min confidence (%)"),
        default=50,
        validators=[MaxValueValidator(100)],
        help_text=_("Violations below this confidence are ignored. 0 counts all."),
    )
    on_failure = models.CharField(
        _("if the check fails"),
        max_length=10,
        choices=Failure,
        default=Failure.BLOCK,
        help_text=_(
            "For rules that block: on an error, a timeout, an invalid response or a "
            "reached cost limit. When the run has no calls left, the text is always "
            "blocked."
        ),
    )
    max_calls = models.PositiveIntegerField(
        _("max calls per run"),
        default=100,
        validators=[MinValueValidator(1), MaxValueValidator(1_000)],
    )
    max_daily_cost = models.FloatField(
        _("max cost per day (USD)"),
        null=True,
        blank=True,
        default=5.0,
        validators=[MinValueValidator(0)],
        help_text=_("Leave empty for no limit. Calls of a model without a price count as $0."),
    )
    max_call_tokens = models.PositiveIntegerField(
        _("max tokens per call"),
        default=8_000,
        validators=[MinValueValidator(100), MaxValueValidator(1_000_000)],
        help_text=_("A longer text is checked in overlapping parts, one call each."),
    )
    timeout = models.PositiveIntegerField(
        _("timeout (seconds)"),
        default=20,
        validators=[MinValueValidator(1), MaxValueValidator(120)],
    )

    objects = GuardrailPatternQuerySet.as_manager()

    class Meta:
        verbose_name = _("guardrail")
        verbose_name_plural = _("guardrails")
        ordering = ["position", "pk"]

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **options: Any) -> None:
        """Add a new rule at the end of the list."""
        if self._state.adding and not self.position:
            last = GuardrailPattern.objects.aggregate(most=models.Max("position"))["most"]
            self.position = (last or 0) + 1
        super().save(*args, **options)

    @property
    def is_model_check(self) -> bool:
        return self.kind == self.Kind.MODEL

    @property
    def is_words(self) -> bool:
        return self.kind == self.Kind.WORDS

    @property
    def words(self) -> list[str]:
        """The words and phrases of such a rule."""
        return [line for line in map(str.strip, self.pattern.splitlines()) if line]

    def clean(self) -> None:
        if not self.is_model_check:
            try:
                Pattern(pattern=self.pattern, is_words=self.is_words).try_out()
            except BadPattern as error:
                raise ValidationError({"pattern": gettext(str(error))}) from error
            return
        problems: dict[str, str] = {}
        if not self.model:
            problems["model"] = gettext("Choose a model.")
        if not self.rubric.strip():
            problems["rubric"] = gettext("Describe what counts as a violation.")
        if self.action not in {self.Action.WARN, self.Action.BLOCK}:
            problems["action"] = gettext("A model check can only warn or block.")
        if self.stage == self.Stage.TOOL_INPUT:
            problems["stage"] = gettext("Only patterns can check tool arguments.")
        if problems:
            raise ValidationError(problems)


@receiver(pre_delete, sender=Agent)
def _disable_orphaned(
    sender: type[Agent], instance: Agent, origin: object = None, **signal: Any
) -> None:
    """Disable patterns of deleted agents only, which would otherwise apply to all."""
    going = origin if isinstance(origin, models.QuerySet) else [instance]
    gone = [agent.pk for agent in going]
    theirs = GuardrailPattern.objects.filter(agents__in=gone).values("pk")
    other_links = GuardrailPattern.agents.through.objects.exclude(agent__in=gone)
    alone = GuardrailPattern.objects.filter(pk__in=theirs)
    alone.exclude(pk__in=other_links.values("guardrailpattern")).update(enabled=False)


class GuardrailUsage(models.Model):
    """What a model check used on one day."""

    pattern = models.ForeignKey(GuardrailPattern, models.CASCADE, related_name="usage")
    day = models.DateField(_("day"))
    calls = models.PositiveIntegerField(_("calls"), default=0)
    failures = models.PositiveIntegerField(_("failed calls"), default=0)
    tokens = models.PositiveIntegerField(_("tokens"), default=0)
    cost = models.FloatField(_("cost"), default=0.0)

    class Meta:
        verbose_name = _("guardrail usage")
        verbose_name_plural = _("guardrail usage")
        constraints = [
            models.UniqueConstraint(
                fields=["pattern", "day"], name="usage_of_a_guardrail_a_day"
            )
        ]

    def __str__(self) -> str:
        return f"{self.pattern_id} {self.day}"


class GuardrailHitQuerySet(models.QuerySet["GuardrailHit"]):
    def for_user(self, user: AnyUser) -> Self:
        """Return hits in runs this user can see."""
        runs = Run.objects.for_user(user)
        return self.filter(run__in=runs) if runs.query.where else self


class GuardrailHit(models.Model):
    """A match of a pattern in a run, saved with its event."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="hits")
    # Without a constraint: a pattern may be deleted while runs still use it.
    pattern = models.ForeignKey(
        GuardrailPattern,
        models.CASCADE,
        related_name="hits",
        db_constraint=False,
        db_index=False,
    )
    step = models.PositiveIntegerField(_("step"))
    agent_name = models.CharField(_("agent"), max_length=64)
    stage = models.CharField(_("stage"), max_length=12, choices=stage_choices)
    action = models.CharField(_("action"), max_length=10, choices=GuardrailPattern.Action)
    is_observed = models.BooleanField(_("observed only"), default=False)
    matches = models.PositiveIntegerField(_("matches"), default=1)
    at = models.DateTimeField(_("time"))

    objects = GuardrailHitQuerySet.as_manager()

    class Meta:
        verbose_name = _("guardrail hit")
        verbose_name_plural = _("guardrail hits")
        indexes = [
            models.Index(fields=["pattern", "id"], name="hits_of_a_pattern"),
            models.Index(fields=["at"], name="hits_by_time"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id}/{self.step}"


class GuardrailVerdict(models.Model):
    """A reviewer's verdict on a hit; the latest counts."""

    hit = models.OneToOneField(GuardrailHit, models.CASCADE, related_name="verdict")
    is_right = models.BooleanField(_("correct"))
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    at = models.DateTimeField(_("time"), auto_now=True)

    class Meta:
        verbose_name = _("guardrail hit verdict")
        verbose_name_plural = _("guardrail hit verdicts")

    def __str__(self) -> str:
        return f"{self.hit_id}: {self.is_right}"
