"""Where programs want to be told of a run's status: push notifications of A2A."""

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from ..secret import EncryptedTextField
from .runs import Run

NAME_CHARS = 64
SCHEME_CHARS = 40


class PushTargetQuerySet(models.QuerySet["PushTarget"]):
    def due(self) -> "PushTargetQuerySet":
        """Return targets that don't know their run's status yet, unless they must wait.

        Whose key was revoked or account disabled is told nothing more.
        """
        changed = ~models.Q(sent_status=models.F("run__status"))
        ready = models.Q(next_at=None) | models.Q(next_at__lte=Now())
        revoked = models.Q(run__api_key=None) | ~models.Q(run__api_key__revoked_at=None)
        return self.filter(changed & ready & ~revoked, run__user__is_active=True)


class PushTarget(models.Model):
    """An address that gets a run whenever its status changes.

    It compares what was sent last with the run as it is, so that nothing is lost when a
    process ends, and the newest status is what arrives.
    """

    run = models.ForeignKey(
        Run, verbose_name=_("run"), on_delete=models.CASCADE, related_name="push_targets"
    )
    name = models.CharField(
        _("name"), max_length=NAME_CHARS, help_text=_("As the program calls it.")
    )
    # It often has a secret in it.
    url = EncryptedTextField(_("URL"))
    token = EncryptedTextField(_("token"), blank=True, default="")
    scheme = models.CharField(_("authentication scheme"), max_length=SCHEME_CHARS, blank=True)
    credentials = EncryptedTextField(_("credentials"), blank=True, default="")
    sent_status = models.CharField(_("last status sent"), max_length=12)
    attempts = models.PositiveSmallIntegerField(_("attempts"), default=0)
    next_at = models.DateTimeField(_("next attempt"), null=True, blank=True)
    last_error = models.TextField(_("last error"), blank=True)

    objects = PushTargetQuerySet.as_manager()

    class Meta:
        verbose_name = _("push notification")
        verbose_name_plural = _("push notifications")
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["run", "name"], name="one_push_target_a_name")
        ]

    def __str__(self) -> str:
        return f"{self.run_id} {self.name}"
