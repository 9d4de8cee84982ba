"""Template tags for notifications."""

from django import template

from agents.insight.alerts.models import Notification

register = template.Library()


@register.simple_tag(takes_context=True)
def unread_notifications(context: template.Context) -> int:
    """Return how many notifications the page's user hasn't read."""
    return Notification.objects.filter(user=context["user"].pk, read_at=None).count()
