"""A recording's words for the composer, where its user edits and sends them."""

from django.db import transaction
from django.http import JsonResponse
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from agents.access.requests import UserRequest
from agents.knowledge import ingestion
from agents.knowledge.media.transcript import without_times
from agents.models import Document
from chat.attachments.presentation import FileView
from chat.models import Attachment


@require_POST
def dictate(request: UserRequest, pk: int) -> JsonResponse:
    """Return what was said, and leave the recording as a file without a text of its own.

    The message is then the transcript, as its user corrected it.
    """
    mine = Attachment.objects.unsent_by(request.user)
    with transaction.atomic():
        row = get_object_or_404(mine.select_for_update(of=("self",)), pk=pk)
        document = row.document
        is_sound = row.kind == Attachment.Kind.AUDIO
        if not is_sound or document is None or document.status != Document.Status.READY:
            return JsonResponse({"problem": _("This recording has no transcript.")}, status=409)
        lines = document.parts.order_by("number").values_list("text", flat=True)
        text = without_times("\n\n".join(lines), document.language)
        row.document = None
        row.save(update_fields=["document"])
        ingestion.delete(document)
    return JsonResponse({"text": text, "file": FileView(row).to_json()})
