"""Review queues in the console: their reviewers, instructions and rubric."""

from typing import Any, cast

from django import forms
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.access import audit
from agents.console.admin_classes.model_admin import ConsoleAdmin
from agents.db.sanitize import parse_id

from . import criteria_field
from .criteria_field import CriteriaField
from .models import REVIEW_PERMISSION, Criterion, Review, ReviewQueue


class ReviewQueueForm(forms.ModelForm):
    criteria = CriteriaField(
        label=_("Rubric"),
        required=False,
        help_text=_(
            "What reviewers score besides the verdict. Removing a criterion deletes its scores."
        ),
    )

    class Meta:
        model = ReviewQueue
        fields = ("name", "instructions", "reviewers", "criteria")
        widgets = {"instructions": forms.Textarea(attrs={"rows": 5})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["criteria"] = criteria_field.saved_rows(self.instance)
        if "reviewers" in self.fields:
            users = get_user_model().objects
            may_review = Q(pk__in=users.with_perm(REVIEW_PERMISSION).values("pk"))
            if self.instance.pk:
                may_review |= Q(pk__in=self.instance.reviewers.values("pk"))
            field = cast(forms.ModelMultipleChoiceField, self.fields["reviewers"])
            field.queryset = users.filter(may_review).order_by("username")

    def clean_name(self) -> str:
        return " ".join(self.cleaned_data["name"].split())

    def clean_criteria(self) -> list[criteria_field.Row]:
        """Reject another scale for what has scores, which would no longer fit."""
        rows: list[criteria_field.Row] = self.cleaned_data["criteria"]
        for row in rows:
            saved = Criterion.objects.filter(
                queue=self.instance.pk, pk=parse_id(row["id"]) or 0
            )
            changed = saved.exclude(scale=row["scale"]).filter(scores__isnull=False)
            if changed.exists():
                raise forms.ValidationError(
                    gettext(
                        "%(name)s already has scores, so its scale can't change. Add another "
                        "criterion instead."
                    )
                    % {"name": row["name"]}
                )
        return rows


@admin.register(ReviewQueue)
class ReviewQueueAdmin(ConsoleAdmin):
    form = ReviewQueueForm
    list_display = ["name", "reviewer_names", "rubric", "waiting", "decided"]
    search_fields = ["name"]
    fields = ["name", "instructions", "reviewers", "criteria"]
    actions = None  # the page that deletes one says what becomes of its reviews

    def get_queryset(self, request: HttpRequest) -> QuerySet[ReviewQueue]:
        is_open = Q(reviews__verdict="")
        rows = super().get_queryset(request).prefetch_related("reviewers", "criteria")
        return rows.annotate(
            open_count=Count("reviews", filter=is_open),
            decided_count=Count("reviews", filter=~is_open),
        )

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """Display the rubric as text to those who can't change it."""
        if obj is None or self.has_change_permission(request, obj):
            return list(self.fields or ())
        return ["name", "instructions", "reviewer_names", "rubric"]

    def formfield_for_manytomany(self, db_field: Any, request: Any, **options: Any) -> Any:
        return super().formfield_for_manytomany(
            db_field, request, **{"widget": forms.CheckboxSelectMultiple, **options}
        )

    def save_related(self, request: Any, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        criteria_field.save_rows(form.instance, form.cleaned_data["criteria"])

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> Any:
        message = super().construct_change_message(request, form, formsets, add)
        changes = vars(request)["changes"]
        changes.pop("reviewers", None)  # in the details, without names that outlive accounts
        if "criteria" in changes:
            saved, typed = form.initial["criteria"], form.cleaned_data["criteria"]
            changes["criteria"] = [criteria_field.describe(rows) for rows in (saved, typed)]
        return message

    def audit_details(self, row: Any) -> dict[str, Any]:
        reviewers = [audit.person(user) for user in row.reviewers.order_by("pk")]
        return {**super().audit_details(row), "reviewers": reviewers}

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        reviews = Review.objects.filter(queue=parse_id(object_id) or 0)
        context = {"review_count": reviews.count(), **(extra_context or {})}
        return super().delete_view(request, object_id, context)

    @admin.display(description=_("reviewers"))
    def reviewer_names(self, queue: ReviewQueue) -> str:
        names = sorted(user.get_username() for user in queue.reviewers.all())
        return ", ".join(names) or gettext("All reviewers")

    @admin.display(description=_("rubric"))
    def rubric(self, queue: ReviewQueue) -> str:
        return ", ".join(criterion.name for criterion in queue.criteria.all()) or "—"

    @admin.display(description=_("waiting for review"), ordering="open_count")
    def waiting(self, queue: Any) -> int:
        return int(queue.open_count)

    @admin.display(description=_("reviewed"), ordering="decided_count")
    def decided(self, queue: Any) -> int:
        return int(queue.decided_count)
