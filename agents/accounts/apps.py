from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class AccountsConfig(AppConfig):
    name = "agents.accounts"
    label = "people"
    verbose_name = _("Users")

    def ready(self) -> None:
        # These need the models, which are only loaded now.
        from agents.access import recently_deleted

        from .deleted_memories import DeletedExperiences, DeletedMemories
        from .oauth_server import grants  # noqa: F401  (has a periodic job)
        from .users import roles

        recently_deleted.register(DeletedMemories())
        recently_deleted.register(DeletedExperiences())

        # Role permissions follow from the models, whose permissions are created after
        # migrating.
        post_migrate.connect(roles.sync_groups, dispatch_uid="roles")
