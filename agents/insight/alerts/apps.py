from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AlertsConfig(AppConfig):
    name = "agents.insight.alerts"
    verbose_name = _("Alerts")

    def ready(self) -> None:
        # These need the models, which are only loaded now.
        from django.db.models.signals import post_delete, pre_delete

        from agents import runs
        from agents.console.admin_classes import deleted_rows
        from agents.console.system.config_files import kinds
        from agents.models import Agent, CollectionShare
        from agents.web.library import sharing

        from . import (
            deletion,
            rules,  # noqa: F401  (has periodic jobs)
            schedules,  # noqa: F401  (has periodic jobs)
            shared_collections,
            waiting_schedules,
            webhook_events,
        )
        from .config_kinds import AlertKind, ChannelKind, SummaryKind
        from .models import AlertChannel, AlertRule, SummarySchedule

        kinds.register(
            ChannelKind("alert_channels", AlertChannel),
            AlertKind("alert_rules", AlertRule),
            SummaryKind("summaries", SummarySchedule),
        )

        pre_delete.connect(deletion.disable_rules_of, sender=Agent)
        deleted_rows.about_to_delete.connect(deletion.rules_to_disable, sender=Agent)
        runs.on_finished(waiting_schedules.announce)
        runs.on_finished(webhook_events.announce)
        sharing.shared.connect(shared_collections.notify)
        post_delete.connect(shared_collections.withdraw, sender=CollectionShare)
