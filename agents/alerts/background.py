"""Announces, sends and retries in the background, once a minute."""

from django.utils import timezone

from agents.db.periodic import periodic

from . import delivery, rules, schedules


# Late enough that the problems of the same minute are grouped before.
@periodic("alerts", every=60, delay=20, once=True)
def process_alerts() -> None:
    """Do each part even if another one fails."""
    try:
        rules.announce()
    finally:
        try:
            schedules.send_due()
        finally:
            delivery.deliver_due()


@periodic("old deliveries", every=3_600, once=True)
def delete_old_deliveries() -> None:
    delivery.delete_old(timezone.now())
