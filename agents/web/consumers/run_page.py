"""The socket of a run's own page."""

from agents.access import audit, masking
from agents.access.masking import Masker
from agents.db import database
from agents.models import Run
from agents.runs import close_codes

from .. import first_frames
from ..presentation.live_run import LiveRunView
from .live import LiveConsumer


class RunConsumer(LiveConsumer):
    """The page of one run."""

    place = "trace"
    is_masked = True

    def find_topic(self) -> str | None:
        if not self.is_signed_in():
            return None
        pk = self.scope["url_route"]["kwargs"]["pk"]
        run = Run.objects.for_user(self.scope["user"]).filter(pk=pk).first()
        if run is None:
            return None
        self.run = run
        return None if self._became_masked() else run.topic

    def _became_masked(self) -> bool:
        """Whether a visible run must now be masked, so the page has to be reloaded."""
        was, user = self.is_masked, self.scope["user"]
        self.is_masked = masking.is_masked_for(self.run, user, self.login)
        return self.is_masked and not was

    async def send_initial(self) -> None:
        try:
            async with first_frames.acquire_slot():
                frames = await self.show(self.initial_frames, ask=database.run_deferred)
            if frames is None:
                await self._end(self.lost_access_code)
        except audit.NotRecorded:
            await self._end(close_codes.TRY_AGAIN_LATER)

    def initial_frames(self) -> str | None:
        # Access may have been revoked while it waited for its turn.
        if self.find_topic() is None:
            return None
        user, run = self.scope["user"], self.run
        audit.record_view(user, run, "socket")
        masker = Masker() if self.is_masked else None
        # Masked calls can't be approved.
        may_decide = masker is None and run.is_decidable_by(user)
        # Tests of a draft are displayed like a chat, several on one page.
        place = "chat" if run.is_draft_run and "chat" in self.query_params else self.place
        live_view = LiveRunView(run.pk, place, may_decide, user.pk, user.pk in run.rights)
        live_view.masker, self.live_views[run.pk] = masker, live_view
        # The page of a finished run needs no update, unless it was away: then there may be new
        # feedback.
        if "over" in self.query_params and "away" not in self.query_params and not run.is_live:
            live_view.is_live = False
            return ""
        return live_view.snapshot()
