"""Deleted prompts on the page *Recently deleted*."""

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.access import recently_deleted
from agents.access.recently_deleted import CannotRestore, Kind, Restored
from chat.models import SHARE_PERMISSION, Prompt, sharable_groups

from . import prompt_text


class DeletedPrompts(Kind):
    name = "prompt"
    label = gettext_lazy("Prompt")
    plural = gettext_lazy("Prompts")
    model = Prompt

    def restorable_by(self, user: User) -> QuerySet[Prompt]:
        return Prompt.objects.managed_by(user).exclude(deleted_at=None)

    def restore(self, row: Prompt, user: User, name: str = "") -> Restored:
        """Restore a prompt, shared as far as the user can still share it."""
        if prompt_text.is_at_limit(row.user):
            sentence = _("Its owner has reached the limit of %(most)d prompts.")
            raise CannotRestore(sentence % {"most": prompt_text.MAX_PROMPTS})
        same = Prompt.objects.present().filter(user=row.user, name=row.name)
        name = prompt_text.suggest_name(row.name, row.user) if same.exists() else row.name
        groups = list(sharable_groups(user).filter(pk__in=row.groups.all()))
        is_allowed = {
            Prompt.Sharing.EVERYONE: user.has_perm(SHARE_PERMISSION),
            Prompt.Sharing.GROUPS: bool(groups),
        }
        is_shared = is_allowed.get(Prompt.Sharing(row.sharing), False)
        warnings: tuple[str, ...] = ()
        if row.is_shared and not is_shared:
            sentence = _("“%(title)s” was restored, but you can no longer share it.")
            warnings = (sentence % {"title": row.title},)
        sharing = row.sharing if is_shared else Prompt.Sharing.PRIVATE
        recently_deleted.unmark(row, name=name, sharing=sharing)
        row.groups.set(groups if sharing == Prompt.Sharing.GROUPS else [])
        return Restored(name=row.title, url=reverse("chat:prompts"), warnings=warnings)


recently_deleted.register(DeletedPrompts())
