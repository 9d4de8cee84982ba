"""Checks the OpenID Connect provider."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import reverse

from agents.accounts.openid import oidc, provider_check
from agents.accounts.openid.oidc_errors import ProtocolError


class Command(BaseCommand):
    help = "Checks that the OpenID Connect provider can be reached and accepts this server."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--origin",
            default=settings.ORIGINS[0],
            metavar="URL",
            help="where users open this server, e.g. https://chat.example.org",
        )

    def handle(self, origin: str, **options: Any) -> None:
        if not settings.ENVIRONMENT.oidc_issuer:
            raise CommandError("Set ASHIATO_OIDC_ISSUER first.")
        base = origin.rstrip("/")
        client = oidc.configured_client(f"{base}{reverse('people:oidc_back')}")
        try:
            provider_check.check(client)
        except ProtocolError as error:
            advice = provider_check.advice_for(error, client)
            raise CommandError(f"{error} {advice}") from error
        signed_out = f"{base}{reverse('people:oidc_signed_out')}"
        self.stdout.write(f"{client.issuer} accepts this server as {client.client_id!r}.")
        self.stdout.write(f"Redirect URI: {client.redirect_uri}")
        self.stdout.write(f"Post-logout redirect URI (to register, too): {signed_out}")
        self.stdout.write(f"Scopes: {' '.join(client.requested_scopes())}")
