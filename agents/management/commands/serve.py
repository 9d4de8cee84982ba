"""Runs everything `make run` does after the installation: migrate, seed, announce, serve."""

import logging
import socket
import sys
from errno import EADDRINUSE
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.catalog.language_models import model_setups
from agents.knowledge.files import folder_identity
from agents.llm import tokens
from agents.management import memory
from agents.runs import leases
from agents.tools.addresses import AllowList

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Migrates the database, creates the sample data and starts the web server."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default=settings.ENVIRONMENT.host)
        parser.add_argument("--port", type=int, default=settings.ENVIRONMENT.port)

    def handle(self, host: str, port: int, **options: Any) -> None:
        memory.share_memory()
        check_port(host, port)
        allow_origins(host, port)
        check_egress()
        check_model()
        self.stdout.write("")
        call_command("setup", stdout=self.stdout)
        check_data_folder()
        if not settings.WORKERS and (count := len(leases.find_abandoned())) > 0:
            self.stdout.write(f"Resuming  {count} interrupted run{'' if count == 1 else 's'}")
        choice = model_setups.default_model()
        self.stdout.write(f"Model     {choice.label} ({choice.source})")
        display_host = "127.0.0.1" if host in {"0.0.0.0", "::"} else host
        display_host = f"[{display_host}]" if ":" in display_host else display_host
        self.stdout.write(f"Open      http://{display_host}:{port}/")
        self.stdout.write("Stop      Ctrl-C\n")
        sys.stdout.flush()
        tokens.keep_loading_off_loop()
        from agents.web.asgi import server  # uses this process's event loop

        server.serve(host, port)


def check_port(host: str, port: int) -> None:
    """Report at once if the port is in use."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == EADDRINUSE:
                reason = (
                    f"Port {port} is in use. Choose another one, for example PORT={port + 1}."
                )
            else:
                reason = f"Can't listen on {host}:{port}: {error.strerror}."
            raise CommandError(reason) from error


def allow_origins(host: str, port: int) -> None:
    """Accept forms and sockets of pages at this address, unless ASHIATO_ORIGINS is set."""
    environment = settings.ENVIRONMENT.model_copy(update={"host": host, "port": port})
    # In place: Django's settings for forms are the same list.
    settings.ORIGINS[:] = environment.all_origins()
    settings.ALLOWED_HOSTS[:] = environment.all_hosts()


def check_egress() -> None:
    for name, entries in (("EGRESS", settings.EGRESS_ALLOW), ("PAGES", settings.PAGES_ALLOW)):
        try:
            AllowList.read(entries)
        except ValueError as error:
            raise CommandError(f"ASHIATO_{name}_ALLOW: {error}") from error


def check_data_folder() -> None:
    """Say if the other processes store files elsewhere; pages and runs still work."""
    if problem := folder_identity.find_problem():
        logger.error(problem)


def check_model() -> None:
    """Report at once if the environment's model is invalid."""
    name = settings.ENVIRONMENT.model
    if name and name != model_setups.DEMO and (sentence := model_setups.name_problem(name)):
        raise CommandError(f"ASHIATO_MODEL: {sentence}")
