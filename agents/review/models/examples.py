"""Examples that are made from runs, in sets."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.models import Agent, HiddenTopic, Run

from .fields import MAX_NAME_CHARS, user_foreign_key

DEFAULT_SET_NAME = "Saved examples"


class ExampleSetManager(models.Manager["ExampleSet"]):
    def default(self) -> "ExampleSet":
        """Return the set of examples without a chosen one."""
        return self.get_or_create(name=DEFAULT_SET_NAME)[0]


class ExampleSet(models.Model):
    """Examples that are run and scored together."""

    name = models.CharField(_("name"), max_length=MAX_NAME_CHARS, unique=True)
    description = models.CharField(
        _("description"), max_length=200, blank=True, help_text=_("What this set tests.")
    )
    agent = models.ForeignKey(
        Agent,
        verbose_name=_("agent"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text=_("Agent that is selected when you run the set."),
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    objects = ExampleSetManager()

    class Meta:
        verbose_name = _("example set")
        verbose_name_plural = _("example sets")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class ExampleManager(models.Manager["Example"]):
    """Leaves out examples of runs in deleted chats, which are erased with them."""

    def get_queryset(self) -> "models.QuerySet[Example]":
        deleted_topics = HiddenTopic.objects.filter(user=None).values("topic")
        return super().get_queryset().exclude(run__topic__in=deleted_topics)


class Example(models.Model):
    """A question with an expected answer or checks, by hand or from a run.

    `observations` are the recorded tool results, so that it can be rerun at any time.
    """

    name = models.CharField(_("name"), max_length=120, unique=True)
    example_set = models.ForeignKey(
        ExampleSet,
        verbose_name=_("example set"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="examples",
    )
    checks = models.JSONField(
        _("checks"), default=list, blank=True, db_default=models.Value([], models.JSONField())
    )
    tags = models.CharField(
        _("tags"),
        max_length=200,
        blank=True,
        default="",
        db_default="",
        help_text=_("Separated by commas, e.g. billing, regression."),
    )
    run = models.ForeignKey(
        Run,
        verbose_name=_("run"),
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="examples",
    )
    agent = models.ForeignKey(
        Agent,
        verbose_name=_("agent"),
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    agent_name = models.CharField(_("agent name"), max_length=MAX_NAME_CHARS, blank=True)
    question = models.TextField(_("question"))
    history = models.JSONField(_("earlier messages"), default=list, blank=True)
    observations = models.JSONField(_("tool results"), default=list, blank=True)
    expected = models.TextField(_("expected answer"), blank=True)
    saved_by = user_foreign_key(_("saved by"))
    saved_at = models.DateTimeField(_("saved"), auto_now_add=True)
    score = models.FloatField(_("last score"), null=True, blank=True)
    scored_at = models.DateTimeField(_("last run"), null=True, blank=True)

    objects = ExampleManager()

    class Meta:
        verbose_name = _("example")
        verbose_name_plural = _("examples")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
