from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class AccountsConfig(AppConfig):
    name = "agents.accounts"
    label = "people"
    verbose_name = _("Users")

    def ready(self) -> None:
        # These need the rows, which are there only now.
        from . import roles

        # What a role may do follows from the models, whose rights are made after migrating.
        post_migrate.connect(roles.sync_groups, dispatch_uid="roles")
