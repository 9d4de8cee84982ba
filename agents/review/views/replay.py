"""Replays of a run, as the user saw it."""

from dataclasses import asdict

from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from agents.access.requests import UserRequest
from agents.review.replays import replay
from agents.review.replays.replay_timeline import ReplayTimeline, parse_number
from agents.review.run_details.audited_reading import open_run
from agents.runs import event_store

SPEEDS = ["0.5", "1", "2", "4", "8"]


@require_GET
def replay_page(request: UserRequest, pk: int) -> HttpResponse:
    readable = open_run(request, pk, "replay")
    run = readable.run
    timeline = ReplayTimeline(readable.run, is_masked=readable.is_masked)
    seq = parse_number(request.GET.get("at"), timeline.last)
    ms = timeline.within(seq, parse_number(request.GET.get("ms"), timeline.duration))
    context = {
        "view": replay.replay_view(
            run, seq, masker=readable.masker, viewer=readable.viewer
        ).view(),
        "timeline": timeline,
        "at": seq,
        "ms": ms,
        "mark": timeline.at(seq, ms),
        "away": timeline.away(ms),
        "before": timeline.before(seq, ms),
        "next": timeline.next(seq, ms),
        "is_live": run.is_live,
        "speeds": SPEEDS,
        "reel": {
            "run": run.pk,
            "at": seq,
            "last": timeline.last,
            "duration": timeline.duration,
            "part": replay.MAX_FRAMES,
            "starts": timeline.starts,
            "marks": [asdict(mark) for mark in timeline.marks],
            "disconnections": [asdict(span) for span in timeline.disconnections],
            "scenes": reverse("trace:scene", args=[run.pk]),
            "trace": reverse("trace:run", args=[run.pk]),
        },
    }
    return render(request, "trace/replay.html", context)


@require_GET
def replay_chunk(request: UserRequest, pk: int) -> JsonResponse:
    """Return a part of the replay as JSON."""
    readable = open_run(request, pk, "replay")
    last_seq = event_store.last_seq(readable.run)
    chunk = replay.load_chunk(
        readable.run,
        parse_number(request.GET.get("after"), last_seq),
        masker=readable.masker,
        viewer=readable.viewer,
    )
    frames = [[frame.seq, frame.ms, frame.html] for frame in chunk.frames]
    return JsonResponse(
        {
            "after": chunk.after,
            "until": chunk.until,
            "ms": chunk.ms,
            "whole": chunk.whole,
            "frames": frames,
        }
    )
