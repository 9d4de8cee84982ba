"""Pages that reviewers read without the rest of the console."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import Http404, HttpRequest

from agents.access.requests import signed_in_user
from agents.review.experiments import reading
from agents.review.models import REVIEW_PERMISSION, ExampleSet

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Any]
else:
    _ModelAdmin = object  # a mixin for ModelAdmin classes


class OpenToReviewers(_ModelAdmin):
    """A ModelAdmin mixin: reviewers read the rows of the agents in their scope, masked."""

    def is_reader(self, request: HttpRequest) -> bool:
        """Whether this user reads as a reviewer, without permission to see all rows."""
        return not super().has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may_view = super().has_view_permission(request, obj)
        return may_view or request.user.has_perm(REVIEW_PERMISSION)

    def has_module_permission(self, request: HttpRequest) -> bool:
        may_view = super().has_module_permission(request)
        return may_view or request.user.has_perm(REVIEW_PERMISSION)

    def _get_obj_does_not_exist_redirect(
        self, request: HttpRequest, opts: Any, object_id: str
    ) -> Any:
        """Say that nothing is there: reviewers can't open the home that Django redirects to."""
        if self.is_reader(request):
            raise Http404
        django_admin: Any = super()  # the type stubs lack this method
        return django_admin._get_obj_does_not_exist_redirect(request, opts, object_id)


class ReadableSetFilter(admin.RelatedFieldListFilter):
    """A filter of lists by example set, which names only sets that the reader sees."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> list[Any]:
        if not model_admin.is_reader(request):
            return list(super().field_choices(field, request, model_admin))
        rows = reading.sets_in_scope(ExampleSet.objects.all(), signed_in_user(request))
        return [(row.pk, str(row)) for row in rows]
