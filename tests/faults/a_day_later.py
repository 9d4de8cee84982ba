"""Makes everything that waits a day older and deactivates its user, or activates it again."""

import sys
from datetime import timedelta

from tests.bench import accounts  # noqa: F401  (sets Django up)

from agents.models import Approval, Run  # isort: skip
from django.contrib.auth import get_user_model  # isort: skip
from django.db.models import F  # isort: skip

DAY = timedelta(days=1)


def later() -> str:
    waiting = Run.objects.waiting()
    name = waiting.latest("pk").user.get_username()
    Approval.objects.waiting().update(asked_at=F("asked_at") - DAY)
    waiting.update(started_at=F("started_at") - DAY, heartbeat_at=F("heartbeat_at") - DAY)
    get_user_model().objects.filter(username=name).update(is_active=False)
    return name


if __name__ == "__main__":
    if sys.argv[1:]:
        get_user_model().objects.filter(username=sys.argv[1]).update(is_active=True)
    else:
        sys.stdout.write(later())
