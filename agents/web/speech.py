"""An answer as sound, for those who see it in a chat."""

from collections.abc import AsyncIterator

from django.db.models import Q
from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from agents.access.requests import UserRequest
from agents.db import database
from agents.engine.errors import AgentError
from agents.knowledge.files import serving
from agents.knowledge.media import speech
from agents.models import Membership, Run, RunAttachment

PRIVATE = {"Cache-Control": "private, no-cache", "X-Accel-Buffering": "no"}
# A link on another site must not make this installation pay for speech.
OWN_PAGES = {"same-origin", "none", ""}


@require_GET
async def read_aloud(request: UserRequest, pk: int) -> HttpResponseBase:
    """Stream an answer in the configured voice; without one, the browser reads it."""
    run = await database.run(_find, request, pk)
    try:
        voice = speech.find_voice(run)
    except AgentError as error:
        return _failed(error)
    text = speech.spoken_text(run.answer)
    if voice is None or not text:
        return HttpResponse(
            _("No voice is set up for reading aloud. Ask your administrator."),
            status=409,
            content_type="text/plain",
        )
    if request.headers.get("Sec-Fetch-Site", "") not in OWN_PAGES:
        raise Http404
    saved = await database.run(speech.find_saved, run, speech.saved_name(voice, text))
    if saved is not None:
        return _serve(request, saved)
    sound = speech.speak(run, voice, text)
    try:
        first = await anext(sound, b"")
    except AgentError as error:
        return _failed(error)
    if request.headers.get("Range", "bytes=0-") != "bytes=0-":
        # Safari only plays what it can ask for in parts.
        async for _piece in sound:
            pass
        saved = await database.run(speech.find_saved, run, speech.saved_name(voice, text))
        if saved is not None:
            return _serve(request, saved)
    response = StreamingHttpResponse(_from_first(first, sound), content_type=speech.MIME_TYPE)
    return serving.with_headers(response, {**PRIVATE, "Accept-Ranges": "none"})


def _failed(error: AgentError) -> HttpResponse:
    return HttpResponse(str(error), status=502, content_type="text/plain; charset=utf-8")


def _find(request: UserRequest, pk: int) -> Run:
    """Return a run of the user's chats: reviewers see others' answers masked, if at all."""
    topics = Membership.objects.shared_topics(request.user)
    mine = Q(user=request.user.pk) | Q(topic__in=topics)
    rows = Run.objects.for_user(request.user).filter(mine).select_related("agent")
    return get_object_or_404(rows, pk=pk)


async def _from_first(first: bytes, sound: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in sound:
        yield piece


def _serve(request: UserRequest, saved: RunAttachment) -> HttpResponseBase:
    assert saved.file is not None
    return serving.serve(request, saved.file, name=saved.name, mime_type=saved.mime_type)
