"""Rules about what may be asked and answered."""

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.engine.errors import BadPattern
from agents.engine.guardrails import compile_pattern


class GuardrailPattern(models.Model):
    class Stage(models.TextChoices):
        INPUT = "input", _("what a person asks")
        OUTPUT = "output", _("what an agent answers")
        BOTH = "both", _("both")

    class Action(models.TextChoices):
        WARN = "warn", _("warn")
        BLOCK = "block", _("block")

    name = models.CharField(_("name"), max_length=80, unique=True)
    pattern = models.CharField(
        _("pattern"),
        max_length=1000,
        help_text=_("A regular expression in RE2 syntax. (?i) at its start ignores case."),
    )
    stage = models.CharField(_("stage"), max_length=10, choices=Stage, default=Stage.BOTH)
    action = models.CharField(_("action"), max_length=10, choices=Action, default=Action.BLOCK)
    message = models.CharField(
        _("message"),
        max_length=300,
        blank=True,
        help_text=_("What the person is told; empty gives the pattern's name."),
    )
    enabled = models.BooleanField(_("enabled"), default=True)

    class Meta:
        verbose_name = _("guardrail pattern")
        verbose_name_plural = _("guardrail patterns")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        try:
            compile_pattern(self.pattern)
        except BadPattern as error:
            raise ValidationError({"pattern": str(error)}) from error
