"""The events of a run, which everything else is derived from."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.engine.events import Event, EventType

from ..sentence_fields import SentenceJSONField
from .runs import Run


class RunEvent(models.Model):
    """One event of a run, exactly as it was emitted."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="events")
    seq = models.PositiveIntegerField(_("number"))
    type = models.CharField(_("type"), max_length=20)
    agent = models.CharField(_("agent"), max_length=64)
    time = models.DateTimeField(_("time"))
    data = SentenceJSONField(_("data"))

    class Meta:
        verbose_name = _("event")
        verbose_name_plural = _("events")
        ordering = ["run_id", "seq"]
        constraints = [
            models.UniqueConstraint(fields=["run", "seq"], name="one_event_a_number")
        ]

    def __str__(self) -> str:
        return f"{self.run_id}.{self.seq} {self.type}"

    @property
    def value(self) -> Event:
        return Event(
            type=EventType(self.type),
            data=self.data,
            agent=self.agent,
            time=self.time,
            seq=self.seq,
        )
