"""Examples: questions with an expected answer and checks."""

from collections.abc import Iterable
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from agents.access import audit, masking
from agents.access.requests import signed_in_user
from agents.console.admin_classes.model_admin import ConsoleAdmin
from agents.db.sanitize import parse_id
from agents.review.experiments import reading
from agents.review.experiments.scoring import checks
from agents.review.experiments.sources import set_files
from agents.review.models import Example, ExampleSet
from agents.web.presentation import trace_url

from .checks_field import ChecksField
from .reader_admin import OpenToReviewers, ReadableSetFilter

PERSONAL_FIELDS = {"question", "history", "observations"}
EDITABLE_FIELDS = ("name", "example_set", "question", "expected", "checks", "tags", "agent")
RECORD_FIELDS = ("source_run", "recorded_calls", "score", "scored_at", "saved_by", "saved_at")
READER_FIELDS = (
    *("name", "set_page", "question", "expected", "check_list", "tags", "agent_name"),
    *("recorded_run", "recorded_calls", "score", "scored_at", "saved_by", "saved_at"),
)
MAX_SET_ACTIONS = 20


class ExampleForm(forms.ModelForm):
    checks = ChecksField(
        label=_("Checks"),
        required=False,
        help_text=_(
            "Each check passes or fails. Without checks, the answer is compared with the "
            "expected answer by words."
        ),
    )

    class Meta:
        model = Example
        fields = EDITABLE_FIELDS
        widgets = {
            "question": forms.Textarea(attrs={"rows": 4}),
            "expected": forms.Textarea(attrs={"rows": 4}),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "example_set" in self.fields:
            self.fields["example_set"].required = True
        if "name" in self.fields:
            self.fields["name"].required = False
            self.fields["name"].help_text = _("If empty, the question is used.")

    def clean_tags(self) -> str:
        return set_files.clean_tags(self.cleaned_data.get("tags"))

    def clean(self) -> Any:
        cleaned = super().clean() or {}
        question = set_files.clean_text(cleaned.get("question", self.instance.question))
        duplicate = set_files.find_duplicate(
            cleaned.get("example_set"), question, self.instance.pk
        )
        if question and duplicate is not None:
            field = "question" if "question" in self.fields else None
            self.add_error(field, set_files.duplicate_message(duplicate))
        if "name" in self.fields and not cleaned.get("name") and question:
            cleaned["name"] = set_files.free_name(question)
        return cleaned


class ExampleChangeList(ChangeList):
    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        example_admin: Any = self.model_admin
        self.result_list = example_admin.visible_examples(request, self.result_list)


@admin.register(Example)
class ExampleAdmin(OpenToReviewers, ConsoleAdmin):
    """What was recorded in a run doesn't change; everything else may."""

    tells_values = False  # they are users' text
    form = ExampleForm
    list_display = ["name", "example_set", "tags", "check_count", "score", "scored_at"]
    list_filter = [("example_set", ReadableSetFilter), "agent_name"]
    list_select_related = ["example_set"]
    search_fields = ["name", "expected", "tags"]
    fields = [*EDITABLE_FIELDS, *RECORD_FIELDS]
    readonly_fields = list(RECORD_FIELDS)
    change_form_template = "admin/review/example/change_form.html"
    change_list_template = "admin/review/example/change_list.html"

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        return ExampleChangeList

    def get_queryset(self, request: HttpRequest) -> QuerySet[Example]:
        rows = super().get_queryset(request)
        if self.is_reader(request):
            rows = reading.examples_in_scope(rows, signed_in_user(request))
        return rows

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Example | None:
        example = super().get_object(request, object_id, from_field)
        if example is None or not self.is_reader(request):
            return example
        if example.run is not None:
            audit.record_view(request.user, example.run, "admin")
        return self.visible_examples(request, [example])[0]

    def visible_examples(
        self, request: HttpRequest, examples: Iterable[Example]
    ) -> list[Example]:
        if not self.is_reader(request):
            return list(examples)
        return reading.mask_examples(examples, signed_in_user(request), request.session)

    def get_search_fields(self, request: HttpRequest) -> list[str]:
        """Leave out what is masked, or it could be guessed letter by letter."""
        return ["agent_name"] if self.is_reader(request) else list(self.search_fields)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """Hide users' questions from administrators without permission to see them."""
        if obj is None:
            return list(EDITABLE_FIELDS)
        if self.is_reader(request):
            return list(READER_FIELDS)  # masked, if it isn't their own question
        is_open = obj.run_id is None or request.user.has_perm(masking.UNMASK_PERMISSION)
        return [name for name in self.fields if is_open or name not in PERSONAL_FIELDS]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        is_recorded = obj is not None and obj.run_id is not None
        return [*RECORD_FIELDS, *(["question"] if is_recorded else [])]

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        chosen = ExampleSet.objects.filter(pk=parse_id(request.GET.get("set")) or 0).first()
        return {"example_set": chosen} if chosen else {}

    def save_model(self, request: Any, obj: Example, form: Any, change: bool) -> None:
        if not change:
            obj.saved_by = request.user
            obj.agent_name = obj.agent.name if obj.agent else ""
        super().save_model(request, obj, form, change)

    def response_add(self, request: HttpRequest, obj: Example, *args: Any) -> HttpResponse:
        """Continue with the set, where the example is now."""
        return self._to_set(obj, super().response_add(request, obj, *args))

    def response_change(self, request: HttpRequest, obj: Example) -> HttpResponse:
        return self._to_set(obj, super().response_change(request, obj))

    def _to_set(self, obj: Example, response: HttpResponse) -> HttpResponse:
        to_list = reverse("admin:review_example_changelist")
        if response.headers.get("Location") == to_list and obj.example_set_id:
            response["Location"] = f"{to_list}?example_set__id__exact={obj.example_set_id}"
        return response

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        pk = parse_id(request.GET.get("example_set__id__exact")) or 0
        rows = ExampleSet.objects.filter(pk=pk)
        if self.is_reader(request):
            rows = reading.sets_in_scope(rows, signed_in_user(request))
        context: dict[str, Any] = {"example_set": rows.first()}
        if context["example_set"]:
            examples = self.get_queryset(request).filter(example_set=pk)
            context["example_count"] = examples.count()
        return super().changelist_view(request, context | (extra_context or {}))

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        actions = super().get_actions(request)
        if not self.has_change_permission(request):
            return actions
        for example_set in ExampleSet.objects.all()[:MAX_SET_ACTIONS]:
            label = gettext("Move to %(name)s") % {"name": example_set.name}
            move: Any = partial(_move, example_set=example_set)
            actions[f"move_{example_set.pk}"] = (move, f"move_{example_set.pk}", label)
        return actions

    @admin.display(description=_("checks"))
    def check_count(self, example: Example) -> str:
        if example.checks:
            return str(len(example.checks))
        return gettext("similarity") if example.expected else gettext("has an answer")

    @admin.display(description=_("checks"))
    def check_list(self, example: Example) -> SafeString | str:
        """Return the checks as lines, for those who read an example."""
        lines = [(checks.label(check["kind"]), check["value"]) for check in example.checks]
        return format_html_join("", "{}: {}<br>", lines) or "—"

    @admin.display(description=_("recorded tool calls"))
    def recorded_calls(self, example: Example) -> int:
        return len(example.observations)

    @admin.display(description=_("run"))
    def source_run(self, example: Any) -> str:
        """Link by number, because a run's name is the user's question."""
        if example.run_id is None:
            return "—"
        url = reverse("admin:agents_run_change", args=[example.run_id])
        return format_html('<a href="{}">#{}</a>', url, example.run_id)

    @admin.display(description=_("example set"))
    def set_page(self, example: Example) -> str:
        """Link to the results of the set, because reviewers can't open its settings."""
        if example.example_set is None:
            return "—"
        url = reverse("admin:review_exampleset_page", args=[example.example_set.pk])
        return format_html('<a href="{}">{}</a>', url, example.example_set.name)

    @admin.display(description=_("run"))
    def recorded_run(self, example: Example) -> str:
        """Link to the trace, because reviewers have no records of runs."""
        if example.run_id is None:
            return "—"
        return format_html('<a href="{}">#{}</a>', trace_url(example.run_id), example.run_id)


def _move(
    model_admin: ExampleAdmin,
    request: HttpRequest,
    rows: QuerySet[Example],
    example_set: ExampleSet,
) -> None:
    """Move examples to another set, except for questions it already has."""
    moved = 0
    for example in rows:
        duplicate = set_files.find_duplicate(example_set, example.question, example.pk)
        if duplicate is None:
            Example.objects.filter(pk=example.pk).update(example_set=example_set)
            moved += 1
        else:
            model_admin.message_user(
                request, set_files.duplicate_message(duplicate), messages.WARNING
            )
    sentence = ngettext("%(count)d example moved.", "%(count)d examples moved.", moved)
    model_admin.message_user(request, sentence % {"count": moved})
