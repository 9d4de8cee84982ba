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
from agents.models import Agent, Run
from agents.models.runs import DRAFT_TOPIC_PREFIX
from agents.runs import event_store
from agents.web.presentation import RunView, trace_url
from agents.web.sandbox import allow_frames

from . import tool_tester
from .agent_editor import form_values
from .model_admin import ConsoleAdmin

MAX_LIVE_RUNS = 5
MAX_QUESTION_CHARS = 20_000
MAX_TURNS = 20


class DraftRunRejected(Exception):
    """Raised when a test run can't start; the user sees the reason."""


class DraftRunAdmin(ConsoleAdmin):
    """The chat beside the editor, in which the draft is tried."""

    def get_urls(self) -> list[URLPattern]:
        def admin_view(view: Any) -> Any:
            return self.admin_site.admin_view(view)

        run_route = "trials/<int:pk>/"
        own = [
            path("trials/", self.try_view, name="agents_agent_try"),
            path(run_route, admin_view(self.run_view), name="agents_agent_trial"),
            path(f"{run_route}stop/", self.stop_view, name="agents_agent_trial_stop"),
        ]
        return [*own, *super().get_urls()]

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
        agent = self._get_agent(request)
        # Regardless of concurrent changes: the draft is tried as it is.
        form = form_values.bind(agent, form_values.of_request(request.POST))
        question = clean_question(request.POST.get("question", ""))
        if not form.is_valid() or not question:
            errors = {} if question else {"question": [_("Enter a question.")]}
            return JsonResponse({"errors": form_errors(form) | errors}, status=422)
        try:
            with db_errors.reraise_as(DraftRunRejected):
                user, topic = signed_in_user(request), request.POST.get("conversation", "")
                return DraftRunResponse(prepare(form, question, user, topic))
        except DraftRunRejected as reason:
            return JsonResponse({"errors": {"question": [str(reason)]}}, status=422)

    def _get_agent(self, request: HttpRequest) -> Agent | None:
        """Return the agent of the form; None for a new one."""
        pk = request.POST.get("tried", "")
        may = self.has_change_permission if pk else self.has_add_permission
        if not may(request):
            raise PermissionDenied
        agent = self.get_object(request, pk) if pk else None
        if pk and agent is None:
            raise Http404
        return agent

    @method_decorator([require_GET, xframe_options_sameorigin])
    @method_decorator([csp_replace({"frame-ancestors": [SELF]}), allow_frames])
    def run_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Display the live run for the pane."""
        run = _own_run(request, pk)
        turns = [RunView(one, "chat", viewer=request.user.pk) for one in _turns(run)]
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
    found = {name: [str(each) for each in errors] for name, errors in form.errors.items()}
    for row in form["given"].value() if "given" in found else ():
        if row.is_on and not row.is_valid():
            found |= {row.add_prefix(n): list(map(str, e)) for n, e in row.errors.items()}
    return found


def prepare(form: Any, question: str, user: User, conversation: str = "") -> Run:
    """Create a run that contains the whole draft; `conversation` is the topic of others."""
    if Run.objects.live().draft_runs().filter(user=user).count() >= MAX_LIVE_RUNS:
        sentence = _(
            "You already have %(most)d test runs in progress. Wait for one "
            "to finish, or stop one."
        )
        raise DraftRunRejected(sentence % {"most": MAX_LIVE_RUNS})
    earlier = _earlier_runs(conversation, user)
    if any(run.is_live for run in earlier):
        raise DraftRunRejected(_("Wait until the current test has finished, or stop it."))
    draft, chosen = form.instance, form.cleaned_data
    if denial := tool_tester.denial(user, [link.tool for link in chosen["given"]]):
        raise DraftRunRejected(denial)
    many = {name: chosen.get(name, ()) for name in agent_spec.related_names()}
    return runs.prepare_draft_run(
        draft,
        agent_spec.build_spec(draft, chosen["given"], many),
        query=question,
        topic=earlier[0].topic if earlier else f"{DRAFT_TOPIC_PREFIX}{uuid4().hex}",
        user=user,
        history=_history(earlier, draft.max_history_turns),
    )


def _history(earlier: list[Run], most: int) -> list[Any]:
    """Return the last exchanges as a model gets them."""
    recent = earlier[len(earlier) - most :] if most < len(earlier) else earlier
    return [message for run in recent for message in event_store.transcript(run)]


def _earlier_runs(topic: str, user: User) -> list[Run]:
    """Return the user's own tests in this conversation, the oldest first."""
    own = Run.objects.draft_runs().filter(user=user, topic=clean_question(topic))
    return list(own.order_by("pk")) if topic else []


def _turns(run: Run) -> list[Run]:
    """Return the conversation up to this run."""
    own = Run.objects.draft_runs().filter(user=run.user_id, topic=run.topic, pk__lte=run.pk)
    return list(own.order_by("-pk")[:MAX_TURNS])[::-1]


def _own_run(request: HttpRequest, pk: int) -> Run:
    mine = Run.objects.for_user(request.user).draft_runs()
    return get_object_or_404(mine, pk=pk, user=request.user)
