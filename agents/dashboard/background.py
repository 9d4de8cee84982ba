"""Summarizes runs and adds up days in the background, in one process at a time."""

from agents.db.periodic import periodic

from . import catch_up, rollups

# So many are summarized before days are added up: well within an interval.
MAX_RUNS = 2_000


@periodic("dashboard", every=120, once=True)
def summarize() -> None:
    catch_up.mark_late_events()
    catch_up.catch_up(MAX_RUNS)
    rollups.mark_days_without_models()
    rollups.roll_up_days()


@periodic("orphaned summaries", every=3_600, once=True)
def delete_orphans() -> None:
    catch_up.delete_orphans()
