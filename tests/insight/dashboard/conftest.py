import pytest
from django.utils import timezone

from agents.metering.figures import catch_up, rollups
from agents.metering.figures.query import By, FiguresQuery
from agents.metering.figures.selection import Selection, Viewer
from agents.metering.figures.windows import HOUR, last_days


@pytest.fixture
def count(administrator):
    """Count what was just saved: from summaries, or from days that are added up."""

    def counted(by="", days=30, viewer=None, *, is_rolled=True, **chosen):
        catch_up.catch_up()
        if is_rolled:
            rollups.roll_up_days()
        window = last_days(days, timezone.now(), HOUR if by == By.BUCKET else None)
        query = FiguresQuery(Viewer(viewer or administrator), window, Selection(**chosen))
        return query.split(By(by)) if by else query.total()

    return counted
