"""Notifications that wait for a page."""

from typing import Any

from agents.runs import pubsub

# Handled by reading the rows, so once is enough.
REPEATED = {pubsub.REFRESH_KIND, "document.changed"}

Notification = tuple[str, dict[str, Any]]


def coalesce(notifications: list[Notification]) -> list[Notification]:
    """Merge notifications of the same run, so that a slow page catches up.

    A refresh runs once and last; earlier, it would find the page behind the events here.
    """
    if len(notifications) == 1:
        return notifications
    joined: list[Notification] = []
    for kind, facts in sorted(
        notifications, key=lambda notification: notification[0] == pubsub.REFRESH_KIND
    ):
        last_kind, last_facts = joined[-1] if joined else ("", {})
        if kind == last_kind == "run.events" and facts["run"] == last_facts["run"]:
            joined[-1] = (
                kind,
                {**last_facts, "events": last_facts["events"] + facts["events"]},
            )
        elif not (kind == last_kind and kind in REPEATED):
            joined.append((kind, facts))
    return joined
