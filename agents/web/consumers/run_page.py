"""The socket of a run's own page."""

from agents.access import audit, masking
from agents.access.masking import Masker
from agents.db import database
from agents.models import Run
from agents.runs import close_codes

from ..presentation.live_run import LiveRunView
from . import first_frames
from .live import LiveConsumer


class RunConsumer(LiveConsumer):
    """The page of one run."""

    is_masked = True

    def find_topic(self) -> str | None:
        if not self.is_signed_in():
            return None
        user = self.scope["user"]
        pk = self.scope["url_route"]["kwargs"]["pk"]
        run = Run.objects.for_user(user).filter(pk=pk).first()
        if run is None:
            return None
        self.run = run
        was_masked = self.is_masked
        self.is_masked = masking.is_masked_for(run, user, self.login)
        # A visible run that must be masked now is gone: the page has to be reloaded.
        return None if self.is_masked and not was_masked else run.topic

    async def send_initial(self) -> None:
        try:
            async with first_frames.acquire_slot():
                await self.show_if_visible(self.initial_frames, execute=database.run_deferred)
        except audit.NotRecorded:
            await self._end(close_codes.TRY_AGAIN_LATER)

    def initial_frames(self) -> str:
        user = self.scope["user"]
        run = self.run
        audit.record_view(user, run, "socket")
        masker = Masker() if self.is_masked else None
        # Masked calls can't be approved.
        may_decide = masker is None and run.is_decidable_by(user)
        # Tests of a draft are displayed like a chat, several on one page.
        layout = "chat" if run.is_draft_run and "chat" in self.query_params else "trace"
        live_view = LiveRunView(run.pk, layout, may_decide, user.pk, user.pk in run.rights)
        live_view.masker = masker
        self.live_views[run.pk] = live_view
        # The page of a finished run needs no update, unless it was away: then there may be new
        # feedback.
        if "over" in self.query_params and "away" not in self.query_params and not run.is_live:
            live_view.is_live = False
            return ""
        return live_view.snapshot()
