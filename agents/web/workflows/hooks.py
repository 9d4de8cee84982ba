"""The address of triggers: another service posts to it, and gets the id of the run."""

import math
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from agents import runs
from agents.db import database
from agents.engine.resilience import TokenBucket
from agents.models import Run, Trigger
from agents.web import request_rate
from agents.web.api_errors import error_response
from agents.web.origin import origin_of

from . import triggers


@csrf_exempt
@login_not_required
@require_POST
async def receive(request: HttpRequest, public_id: str) -> HttpResponse:
    """Start what the trigger says; answer without waiting for the run."""
    if len(request.body) > triggers.MAX_BODY_BYTES:
        sentence = _("The body can have up to %(most)d kB.")
        most = triggers.MAX_BODY_BYTES // 1024
        return error_response(request, 413, sentence % {"most": most}, "body_too_large")
    response, run = await database.run(_start, request, public_id)
    if run is not None:
        runs.launch(run)
    return response


def _start(request: HttpRequest, public_id: str) -> tuple[HttpResponse, Run | None]:
    """Return the answer, and the run to launch if there is a new one."""
    rows = Trigger.objects.select_related("user", "workflow", "agent", "result_channel")
    trigger = rows.filter(public_id=public_id).first()
    if trigger is None:
        return error_response(request, 404, _("There is no such trigger."), "not_found"), None
    try:
        digest = triggers.verify(trigger, request.headers, request.body)
    except triggers.NotVerified:
        sentence = _("The signature or secret is missing, wrong or too old.")
        response = error_response(request, 401, sentence, "not_verified")
        del response["WWW-Authenticate"]  # keys and apps don't open it
        return response, None
    if request.headers.get("X-GitHub-Event") == "ping":  # a test of the address
        return _accepted(request, None, is_new=False), None
    bucket = request_rate.bucket_of("hook", trigger.pk, triggers.REQUESTS_PER_MINUTE)
    if not bucket.allows():
        return _too_many(request, bucket), None
    try:
        payload = triggers.read_payload(request.body)
    except ValueError:
        sentence = _("The body isn't valid JSON.")
        return error_response(request, 400, sentence, "invalid_json"), None
    try:
        run, is_new = triggers.fire(trigger, digest, payload)
    except triggers.TriggerStopped as reason:
        status = 429 if reason.is_limit else 409
        return error_response(request, status, str(reason), "not_started"), None
    return _accepted(request, run, is_new=is_new), run if is_new else None


def _accepted(request: HttpRequest, run: Run | None, *, is_new: bool) -> HttpResponse:
    values: dict[str, Any] = {"run": run and run.pk, "is_new": is_new}
    if run is not None:
        values["url"] = f"{origin_of(request)}{reverse('trace:run', args=[run.pk])}"
    return JsonResponse(values, status=202)


def _too_many(request: HttpRequest, bucket: TokenBucket) -> HttpResponse:
    sentence = _("This trigger has reached its limit of %(most)d requests per minute.")
    most = int(bucket.capacity)
    response = error_response(request, 429, sentence % {"most": most}, "rate_limit_exceeded")
    response["Retry-After"] = str(math.ceil(bucket.seconds_until_free()))
    return response
