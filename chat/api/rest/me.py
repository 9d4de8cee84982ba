"""Who the key belongs to, what it may do, and what is left."""

import math
from datetime import datetime

from ninja import Router, Schema
from pydantic import Field

from agents.access.names import display_name
from agents.metering import budgets
from agents.metering.budgets import BudgetState
from agents.metering.budgets.measures import MEASURES
from agents.models import Quota
from agents.web.api_access import bucket_of

from .access import ANY, RestRequest

router = Router(tags=["Key"], exclude_none=True)


class UserItem(Schema):
    id: int
    username: str
    name: str


class KeyItem(Schema):
    name: str
    prefix: str
    scopes: list[str]
    is_service: bool
    expires_at: datetime | None = None


class RequestLimit(Schema):
    """The key’s requests, as in the headers of every response."""

    per_minute: int
    remaining: int


class UsageLimit(Schema):
    """A limit that messages and runs count against, perhaps with those of others."""

    measure: str = Field(examples=["cost"], description="Cost is in USD, time in seconds.")
    window: str = Field(examples=["day"])
    of: str = Field(description="What has this limit.", examples=["user"])
    limit: float
    used: float
    left: float
    resets_at: datetime


class Me(Schema):
    user: UserItem
    key: KeyItem
    requests: RequestLimit
    limits: list[UsageLimit]


@router.get("/me", auth=ANY, response=Me, operation_id="getMe", summary="Read about this key")
def get_me(request: RestRequest) -> Me:
    """The key, its user, its scopes and what is left of its limits. Any scope will do."""
    key = request.api_key
    user = request.auth.user
    bucket = bucket_of(key)
    return Me(
        user=UserItem(id=user.pk, username=user.get_username(), name=display_name(user)),
        key=KeyItem(
            name=key.name,
            prefix=key.prefix,
            scopes=key.scopes,
            is_service=key.is_service,
            expires_at=key.expires_at,
        ),
        requests=RequestLimit(
            per_minute=int(bucket.capacity),
            remaining=max(0, math.floor(bucket.capacity - bucket.used)),
        ),
        limits=[
            _limit(state)
            for state in budgets.read(user.pk, key=key.pk)
            if state.limit.amount is not None
        ],
    )


def _limit(state: BudgetState) -> UsageLimit:
    unit = MEASURES[state.limit.measure].unit
    return UsageLimit(
        measure=Quota.Measure(state.limit.measure).value,
        window=Quota.Window(state.limit.window).value,
        of=state.limit.kind,
        limit=(state.limit.amount or 0) / unit,
        used=(state.spent + state.held) / unit,
        left=(state.left or 0) / unit,
        resets_at=state.resets_at,
    )
