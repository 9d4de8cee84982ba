import pytest
from django.test import Client
from django.utils import timezone

from agents.dashboard import catch_up, rollups
from agents.dashboard.figures import By, FiguresQuery
from agents.dashboard.selection import Selection, Viewer
from agents.dashboard.windows import last_days


@pytest.fixture
def root(administrator):
    client = Client()
    client.force_login(administrator)
    return client


@pytest.fixture
def count(administrator):
    """Count what was just saved: from summaries, or from days that are added up."""

    def counted(by="", days=30, viewer=None, *, is_rolled=True, **chosen):
        catch_up.catch_up()
        if is_rolled:
            rollups.roll_up_days()
        window = last_days(days, timezone.now())
        query = FiguresQuery(Viewer(viewer or administrator), window, Selection(**chosen))
        return query.split(By(by)) if by else query.total()

    return counted
