"""Tests an unsaved agent with a real run, outside of any chat."""

from typing import Any
from uuid import uuid4

from csp.constants import SELF
from csp.decorators import csp_replace
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_GET, require_POST

from agents import runs
from agents.access.requests import signed_in_user
from agents.catalog import agent_spec
from agents.db import database
from agents.db import errors as db_errors
from agents.models import Run
from agents.models.runs.runs import DRAFT_TOPIC_PREFIX
from agents.runs import event_store
from agents.web.presentation import RunView, trace_url
from agents.web.sandbox import allow_frames

from ..admin_classes.model_admin import ConsoleAdmin
from ..tool_admin import tool_tester
from .agent_editor import form_values

MAX_LIVE_RUNS = 5
MAX_QUESTION_CHARS = 20_000
MAX_TURNS = 20


class DraftRunRejected(Exception):
    """Raised when a test run can't start; the user sees the reason."""


class DraftRunAdmin(ConsoleAdmin):
    """The chat beside the editor, in which the draft is tried."""

    def get_urls(self) -> list[URLPattern]:
        return [
            path("trials/", self.try_view, name="agents_agent_try"),
            self.admin_path("trials/<int:pk>/", self.run_view, "agents_agent_trial"),
            path("trials/<int:pk>/stop/", self.stop_view, name="agents_agent_trial_stop"),
            *super().get_urls(),
        ]

    async def try_view(self, request: HttpRequest) -> HttpResponse:
        """Start a run of the submitted form, on the server's event loop."""
        response = await self._call_admin_view(self._create_run, request)
        if isinstance(response, DraftRunResponse):
            runs.launch(response.run)
        return response

    async def _call_admin_view(
        self, view: Any, request: HttpRequest, *args: Any
    ) -> HttpResponse:
        """Return the response of an admin page, with all its checks."""
        checked = self.admin_site.admin_view(require_POST(view))
        return await database.run(checked, request, *args)

    def _create_run(self, request: HttpRequest) -> HttpResponse:
        """Create the run; problems of the draft are returned by field."""
        pk = request.POST.get("tried", "")  # empty for a new agent
        may = self.has_change_permission if pk else self.has_add_permission
        if not may(request):
            raise PermissionDenied
        agent = self.get_object(request, pk) if pk else None
        if pk and agent is None:
            raise Http404
        # Regardless of concurrent changes: the draft is tried as it is.
        form = form_values.bind(agent, form_values.of_request(request.POST))
        question = clean_question(request.POST.get("question", ""))
        if not form.is_valid() or not question:
            errors = {} if question else {"question": [_("Enter a question.")]}
            return JsonResponse({"errors": form_errors(form) | errors}, status=422)
        try:
            with db_errors.reraise_as(DraftRunRejected):
                user = signed_in_user(request)
                topic = request.POST.get("conversation", "")
                return DraftRunResponse(prepare(form, question, user, topic))
        except DraftRunRejected as reason:
            return JsonResponse({"errors": {"question": [str(reason)]}}, status=422)

    @method_decorator([require_GET, xframe_options_sameorigin])
    @method_decorator([csp_replace({"frame-ancestors": [SELF]}), allow_frames])
    def run_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Display the live run for the pane."""
        run = _own_run(request, pk)
        # The conversation up to this run.
        earlier = Run.objects.draft_runs().filter(
            user=run.user_id, topic=run.topic, pk__lte=run.pk
        )
        newest = list(earlier.order_by("-pk")[:MAX_TURNS])
        turns = [RunView(turn, "chat", viewer=request.user.pk) for turn in reversed(newest)]
        context = {"turns": turns, "view": turns[-1]}
        return render(request, "admin/agents/agent/trial.html", context)

    async def stop_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        response = await self._call_admin_view(self._get_run, request, pk)
        if isinstance(response, DraftRunResponse):
            await runs.stop(response.run)
            return redirect("admin:agents_agent_trial", pk)
        return response

    def _get_run(self, request: HttpRequest, pk: int) -> HttpResponse:
        return DraftRunResponse(_own_run(request, pk))


class DraftRunResponse(JsonResponse):
    """A test run and its URL."""

    def __init__(self, run: Run) -> None:
        url = reverse("admin:agents_agent_trial", args=[run.pk])
        content = {"page": url, "trace": trace_url(run.pk), "conversation": run.topic}
        super().__init__(content)
        self.run = run


def clean_question(text: str) -> str:
    """Return the text as every database accepts it."""
    text = text.replace("\r\n", "\n").replace("\0", "")[:MAX_QUESTION_CHARS].strip()
    return text.encode(errors="replace").decode()


def form_errors(form: Any) -> dict[str, list[str]]:
    """Return errors by input name; those of tools by their rows' names."""
    messages = {name: list(map(str, errors)) for name, errors in form.errors.items()}
    for row in form["given"].value() if "given" in messages else ():
        if row.is_on and not row.is_valid():
            messages |= {row.add_prefix(n): list(map(str, e)) for n, e in row.errors.items()}
    return messages


def prepare(form: Any, question: str, user: User, conversation: str = "") -> Run:
    """Create a run that contains the whole draft; `conversation` is the topic of others."""
    if Run.objects.live().draft_runs().filter(user=user).count() >= MAX_LIVE_RUNS:
        sentence = _(
            "You already have %(most)d test runs in progress. Wait for one "
            "to finish, or stop one."
        )
        raise DraftRunRejected(sentence % {"most": MAX_LIVE_RUNS})
    # The user's own tests in this conversation, the oldest first.
    earlier: list[Run] = []
    if conversation:
        tests = Run.objects.draft_runs().filter(user=user, topic=clean_question(conversation))
        earlier = list(tests.order_by("pk"))
    if any(run.is_live for run in earlier):
        raise DraftRunRejected(_("Wait until the current test has finished, or stop it."))
    draft = form.instance
    chosen = form.cleaned_data
    if denial := tool_tester.denial(user, [link.tool for link in chosen["given"]]):
        raise DraftRunRejected(denial)
    many = {name: chosen.get(name, ()) for name in agent_spec.related_names()}
    remembered = earlier[max(len(earlier) - draft.max_history_turns, 0) :]
    return runs.prepare_draft_run(
        draft,
        agent_spec.build_spec(draft, chosen["given"], many),
        query=question,
        topic=earlier[0].topic if earlier else f"{DRAFT_TOPIC_PREFIX}{uuid4().hex}",
        user=user,
        history=[message for run in remembered for message in event_store.transcript(run)],
    )


def _own_run(request: HttpRequest, pk: int) -> Run:
    mine = Run.objects.for_user(request.user).draft_runs()
    return get_object_or_404(mine, pk=pk, user=request.user)
