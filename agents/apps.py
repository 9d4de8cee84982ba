"""Connects the packages when Django starts: jobs, readers, signals and telemetry."""

import os

from django.apps import AppConfig
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db.models.signals import post_delete, post_migrate, pre_delete, pre_migrate
from django.utils.translation import gettext_lazy as _

from agents.engine import fault_injection


class AgentsConfig(AppConfig):
    name = "agents"
    verbose_name = _("Agents")

    def ready(self) -> None:
        try:
            fault_injection.arm(os.environ)
        except ValueError as error:
            raise ImproperlyConfigured(error) from error
        # These need the models, which are only loaded now.
        from agents import runs
        from agents.access.audit import signals
        from agents.catalog.mcp_servers import resources
        from agents.catalog.mcp_servers.configuration import sandbox_policy
        from agents.db import configuration_rows, jobs
        from agents.knowledge import ingestion, sources
        from agents.knowledge.files import store
        from agents.knowledge.media import reader, video
        from agents.memory import learning  # noqa: F401  (has periodic jobs)
        from agents.metering import caches
        from agents.metering.budgets import starts
        from agents.models import Run
        from agents.runs import pubsub
        from agents.tools import sandbox
        from agents.web.library import deletion  # noqa: F401  (registers what can be restored)
        from agents.web.workflows import schedules  # noqa: F401  (has periodic jobs)

        sandbox.hide(sandbox_policy().hidden)
        jobs.register(ingestion.leases.KIND, ingestion.process_claimed)
        jobs.register(runs.KIND, runs.drive_claimed)
        ingestion.register_publisher(pubsub.publish)
        ingestion.register_reader("audio", reader.read_sound)
        ingestion.register_reader("video", video.read_video)
        sources.register("mcp", resources.open_server)
        caches.connect()
        signals.connect_receivers(self)
        pre_migrate.connect(configuration_rows.drop_triggers, sender=self)
        post_migrate.connect(configuration_rows.create_triggers, sender=self)
        store.release_on_delete()
        pre_delete.connect(starts.keep_usage_of_run, sender=Run)
        post_delete.connect(starts.forget_user, sender=settings.AUTH_USER_MODEL)
        if settings.ENVIRONMENT.exports_events:
            from agents.runs.observability import telemetry

            telemetry.start(settings.ENVIRONMENT)
        if settings.METRICS:
            from agents.runs.observability import metrics

            metrics.start()
