"""The answers that deliveries carry: added when they are sent, and never saved with them."""

from agents.access import masking
from agents.models import Agent, Run

from .models import Delivery, Event

RUN_KEY = "run:"
RESULT_KEY = "result:"


def of(row: Delivery) -> str:
    """Return the answer that belongs to a delivery; empty if its receiver gets none."""
    if row.event != Event.RUN_FINISHED:
        return ""
    kind, _colon, pk = row.key.partition(":")
    is_result = f"{kind}:" == RESULT_KEY
    if not pk.isdecimal() or not (is_result or row.channel.with_answer):
        return ""
    run = Run.objects.listed().select_related("agent").filter(pk=pk).first()
    if run is None:
        return ""
    is_own = row.channel.owner_id is not None and row.channel.owner_id == run.user_id
    is_shown = run.agent is not None and run.agent.personal_data == Agent.PersonalData.SHOWN
    return run.answer if is_own and is_shown else masking.mask_text(run.answer)
