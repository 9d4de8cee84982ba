"""Titles of chats: what they use counts with the run that they are made from."""

import logging
from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, transaction

from agents.db.fast_writes import insert

from .models import TitleUsage
from .totals import NANOS

logger = logging.getLogger(__name__)


def record(run: int, usage: Mapping[str, Any]) -> None:
    """Save what a title used; a failure doesn't take the title away."""
    cost = usage.get("cost")
    row = TitleUsage(
        run_id=run,
        model=usage["model"],
        input_tokens=usage["prompt_tokens"],
        output_tokens=usage["completion_tokens"],
        cost=None if cost is None else round(cost * NANOS),
    )
    try:
        with transaction.atomic():
            insert(row)
    except IntegrityError as error:
        logger.warning("The usage of a title of run %s isn't saved: %s", run, error)
