"""Public links to a chat: created, updated, revoked and opened."""

from datetime import datetime
from types import SimpleNamespace
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from agents.access import audit
from agents.access.audit.request_context import client_address
from agents.access.requests import UserRequest
from agents.engine.resilience import WINDOW_SECONDS
from agents.models import AgentStep, Run
from agents.review.views.sharing import PRIVATE_HEADERS
from agents.web import request_rate
from agents.web.presentation import model_label
from agents.web.presentation.evidence import Evidence, find_evidence, observed
from agents.web.presentation.markdown import render_markdown
from agents.web.sandbox import allow_frames
from chat.models import PublicLink

from . import member_pages, public_links
from .snapshots import MAX_STEP_CHARS

MESSAGES_PER_PAGE = 60
MAX_VISITS = 120  # per minute and address


@require_POST
def create(request: UserRequest, pk: int) -> HttpResponse:
    """Create a link and display it once."""
    chat = member_pages.get_own_session(request, pk)
    level = request.POST.get("level", "")
    hours = request.POST.get("hours", "")
    try:
        token = public_links.create(chat, request.user, level, hours)
    except (public_links.PublicLinkRejected, audit.NotRecorded) as reason:
        return member_pages.render_panel(request, chat, 422, public_problem=str(reason))
    url = request.build_absolute_uri(reverse("chat:public", args=[token]))
    return member_pages.render_panel(request, chat, made_public=url)


@require_POST
def update(request: UserRequest, pk: int, link: int) -> HttpResponse:
    row = _get_own_link(request, pk, link)
    try:
        public_links.update(row, request.user)
    except (public_links.PublicLinkRejected, audit.NotRecorded) as reason:
        return member_pages.render_panel(request, row.session, 422, public_problem=str(reason))
    return member_pages.panel_or_redirect(request, row.session, updated_link=str(row.pk))


@require_POST
def revoke(request: UserRequest, pk: int, link: int) -> HttpResponse:
    row = _get_own_link(request, pk, link)
    public_links.revoke(row, request.user)
    if request.POST.get("from") == "account":
        return redirect("chat:data")
    return member_pages.panel_or_redirect(request, row.session)


@login_not_required
@require_safe  # programs that check a link only ask for its head
@allow_frames
def public_chat(request: HttpRequest, token: str) -> HttpResponse:
    """Display the copy of a chat to anyone who has the link."""
    if request_rate.is_exceeded("public", client_address(request), MAX_VISITS):
        response = render(
            request, "chat/sharing/public_gone.html", {"is_busy": True}, status=429
        )
        response["Retry-After"] = str(WINDOW_SECONDS)
    elif (link := public_links.find(token)) is None:
        response = render(request, "chat/sharing/public_gone.html", status=404)
    else:
        page_number = request.GET.get("page", "")
        if not page_number and request.method == "GET":
            public_links.record_visit(link, request.user)
        paginator = Paginator(link.snapshot["messages"], MESSAGES_PER_PAGE)
        page = paginator.get_page(page_number)
        context = {
            "link": link,
            "title": link.snapshot["title"],
            "has_authors": link.snapshot["authors"] > 1,
            "pages": page,
            "entries": _entry_views(list(page)),
        }
        response = render(request, "chat/sharing/public.html", context)
    for name, value in PRIVATE_HEADERS.items():
        response[name] = value
    return response


def _entry_views(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages of a page; an answer comes after its question."""
    questions = ["", *(entry["content"] for entry in entries)]
    return [
        _entry_view(entry, number, question)
        for number, (entry, question) in enumerate(zip(entries, questions, strict=False))
    ]


def _entry_view(entry: dict[str, Any], number: int, question: str) -> dict[str, Any]:
    view = {**entry, "at": datetime.fromisoformat(entry["at"])}
    if entry["role"] == "user":
        return view
    steps = entry["steps"]
    evidence = Evidence(render_markdown(entry["content"]))
    if any("result" in step for step in steps):
        # The answer is linked to its steps, if their results are in the copy.
        sources = observed(
            SimpleNamespace(**step, observation=step["result"], action_input=step["input"])
            for step in steps
        )
        is_cut = any(len(step["result"]) >= MAX_STEP_CHARS for step in steps)
        base = f"#answer-{number}-step-"
        known = f"{question}\n{view['at']:%Y-%m-%d}"
        evidence = find_evidence(evidence.html, sources, base, is_cut, question=known)
    return view | {
        "number": number,
        "evidence": evidence,
        "html": evidence.html,
        "correction_html": render_markdown(entry["correction"]),
        "model_label": model_label(entry["model"]),
        "status_label": Run.Status(entry["status"]).label,
        "steps": [
            step
            | {
                "kind_label": AgentStep.Kind(step["kind"]).label,
                "status_label": AgentStep.Status(step["status"]).label,
                "has_details": any(map(step.get, ("thought", "input", "result", "files"))),
            }
            for step in steps
        ],
    }


def _get_own_link(request: UserRequest, pk: int, link: int) -> PublicLink:
    links = public_links.links_of(request.user).select_related("session__user")
    return get_object_or_404(links, session=pk, pk=link)
